//! Reading as a member of a group: register, poll, write out, say goodbye.
//!
//! Order: a poll commits what the poll before gave, and the goodbye what the last one gave, so records are committed
//! after they were handed to the output. What was written only in part (`--max`, or nobody reads on) is given again.

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
    let outcome = tokio::select! {
        outcome = poll(command, &mut client, &member, printer) => outcome,
        // The records of the poll under way are given again.
        _ = signal::ctrl_c() => printer.flush().map(|()| false),
    };
    // A connection in the middle of an answer is of no use any more.
    let mut client = command.node.client();
    let goodbye = client.goodbye(&member, matches!(outcome, Ok(true))).await;
    outcome.and(goodbye)
}

/// Polls until there is nothing more to write; says whether all that was given was written.
async fn poll(
    command: &Consume,
    client: &mut Client,
    member: &Member<'_>,
    printer: &mut Printer,
) -> Outcome<bool> {
    while !printer.is_full() {
        let Some(body) = client.poll(member, command.follow).await? else {
            if command.follow {
                continue;
            }
            break;
        };
        let records: Vec<Record<'_>> =
            serde_json::from_slice(&body).map_err(|error| unreadable(&error))?;
        for record in &records {
            if printer.is_full() {
                printer.flush()?;
                return Ok(false);
            }
            printer.print(record)?;
        }
        printer.flush()?;
    }
    Ok(true)
}
