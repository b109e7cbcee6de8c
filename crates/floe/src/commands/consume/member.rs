//! Reading as a member of a group: register, poll, write out, say goodbye.
//!
//! Order: a poll commits what the poll before gave, and the goodbye what was written of the last one, so records are
//! committed after they were handed to the output, and what was not is given again (`--max`, or nobody reads on).

use std::collections::BTreeMap;

use floe_world::{Random as _, random};
use tokio::signal;

use super::print::{Printer, Record};
use super::reader::From;
use super::{Consume, unreadable};
use crate::client::Client;
use crate::client::api::Member;
use crate::exit::{Code, Failure, Outcome};

/// Reads through the group as the command says.
pub(super) async fn read(command: &Consume, group: &str, printer: &mut Printer) -> Outcome {
    let on_new_group = match command.from {
        From::Earliest => "startFromEarliest",
        From::Latest => "startFromLatest",
        From::Offset(_) | From::Time(_) => {
            return Err(Failure::new(
                Code::Usage,
                "a group begins at earliest or latest; an offset or a time is for reading without --group",
            ));
        }
    };
    let id = format!("floe-{:016x}", random::System.next_u64());
    let member = Member {
        id: &id,
        group,
        topic: &command.topic,
    };
    let mut client = command.node.client();
    client.register(&member, on_new_group).await?;
    let mut written = Written::new();
    let outcome = tokio::select! {
        outcome = poll(command, &mut client, &member, printer, &mut written) => outcome,
        _ = signal::ctrl_c() => Ok(()),
    };
    // What did not leave the command was not read.
    let outcome = outcome.and(printer.flush());
    if outcome.is_err() {
        written.clear();
    }
    // A connection in the middle of an answer is of no use any more.
    let mut client = command.node.client();
    let goodbye = client.goodbye(&member, &written).await;
    outcome.and(goodbye)
}

/// By partition, the offset after the last record written of what the last poll gave.
type Written = BTreeMap<u64, u64>;

/// Polls until there is nothing more to write.
async fn poll(
    command: &Consume,
    client: &mut Client,
    member: &Member<'_>,
    printer: &mut Printer,
    written: &mut Written,
) -> Outcome {
    while !printer.is_full() {
        let Some(body) = client.poll(member, command.follow).await? else {
            if command.follow {
                continue;
            }
            break;
        };
        // It committed what the one before gave.
        written.clear();
        let records: Vec<Record<'_>> =
            serde_json::from_slice(&body).map_err(|error| unreadable(&error))?;
        for record in &records {
            if printer.is_full() {
                break;
            }
            printer.print(record)?;
            let offset: u64 = serde_json::from_str(record.offset.get().trim_matches('"'))
                .map_err(|error| unreadable(&error))?;
            written.insert(record.partition.unwrap_or_default(), offset + 1);
        }
        printer.flush()?;
    }
    Ok(())
}
