//! What the voter asked to be stored, on its way into the log.
//!
//! Guarantees: stores go to the log in their order and are reported in it, several under way at a time; what one has to say goes out
//! when it and all before it are durable. A snapshot is installed while nothing else is under way, as the log wants it.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use floe_log::{CatalogEntry, Failure, Log, Receipt};
use floe_model::NodeId;

use super::agreement::Store;
use super::stream::{self, CATALOG_GROUP};
use crate::peers;

/// Bytes of entries that go into the log at a time: well below its largest group.
const APPEND_BYTES_MAX: usize = 1 << 20;

/// See the module.
pub(crate) struct Stores {
    log: Log,
    waiting: VecDeque<Store>,
    under_way: VecDeque<UnderWay>,
}

struct UnderWay {
    number: u64,
    receipts: VecDeque<Receipt>,
    after: Vec<(NodeId, peers::Message)>,
    installs: bool,
}

/// One that is durable: its number (0: nothing to report), and what is to be sent before that is reported.
pub(crate) type Durable = (u64, Vec<(NodeId, peers::Message)>);

impl Stores {
    pub(crate) fn new(log: Log) -> Self {
        Self {
            log,
            waiting: VecDeque::new(),
            under_way: VecDeque::new(),
        }
    }

    /// One more.
    pub(crate) fn add(&mut self, mut store: Store) {
        if store.install.is_some() && !store.append.is_empty() {
            // What came right behind the snapshot waits until that is there.
            let before = Store {
                vote: store.vote.take(),
                install: store.install.take(),
                ..Store::default()
            };
            self.waiting.push_back(before);
        }
        self.waiting.push_back(store);
        self.begin();
    }

    /// The next one that is durable.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Durable, Failure>> {
        let Some(first) = self.under_way.front_mut() else {
            return Poll::Pending;
        };
        while let Some(receipt) = first.receipts.front_mut() {
            match Pin::new(receipt).poll(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(failure)) => return Poll::Ready(Err(failure)),
                Poll::Ready(Ok(())) => drop(first.receipts.pop_front()),
            }
        }
        let done = self.under_way.pop_front().expect("it is the first");
        self.begin();
        Poll::Ready(Ok((done.number, done.after)))
    }

    fn begin(&mut self) {
        while let Some(next) = self.waiting.front() {
            let is_blocked = next.install.is_some() && !self.under_way.is_empty();
            if is_blocked || self.under_way.iter().any(|store| store.installs) {
                return;
            }
            let store = self.waiting.pop_front().expect("it is the first");
            let begun = self.write(store);
            self.under_way.push_back(begun);
        }
    }

    fn write(&self, store: Store) -> UnderWay {
        let mut receipts = VecDeque::new();
        if let Some(vote) = store.vote {
            receipts.push_back(self.log.vote(CATALOG_GROUP, stream::drawn_vote(vote)));
        }
        let installs = store.install.is_some();
        if let Some(snapshot) = store.install {
            let snapshot = stream::snapshot(snapshot);
            receipts.push_back(self.log.install(CATALOG_GROUP, snapshot));
        }
        let mut chunk: Vec<CatalogEntry> = Vec::new();
        let mut chunk_bytes = 0;
        for entry in store.append.iter().map(stream::drawn) {
            if chunk_bytes + entry.data.len() > APPEND_BYTES_MAX && !chunk.is_empty() {
                let full = std::mem::take(&mut chunk);
                receipts.push_back(self.log.catalog_append(CATALOG_GROUP, full));
                chunk_bytes = 0;
            }
            chunk_bytes += entry.data.len();
            chunk.push(entry);
        }
        if !chunk.is_empty() {
            receipts.push_back(self.log.catalog_append(CATALOG_GROUP, chunk));
        }
        UnderWay {
            number: store.number,
            receipts,
            after: store.after,
            installs,
        }
    }
}
