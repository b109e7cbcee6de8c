//! Reading as a member of a group: register, poll, write out, commit, say goodbye.
//!
//! Order: records are committed after they were handed to the output; what was not is given again. A poll whose records
//! were written only in part (`--max`) is not committed.

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
        // The runtime catches the signal from here on; the records of the poll under way are given again.
        _ = signal::ctrl_c() => printer.flush(),
    };
    // A connection in the middle of an answer is of no use any more.
    let mut client = command.node.client();
    let goodbye = client.goodbye(&member).await;
    outcome.and(goodbye)
}

async fn poll(
    command: &Consume,
    client: &mut Client,
    member: &Member<'_>,
    printer: &mut Printer,
) -> Outcome {
    while !printer.is_full() {
        let Some(lines) = client.poll(member, command.follow).await? else {
            if command.follow {
                continue;
            }
            break;
        };
        let mut is_whole = true;
        for line in lines.split(|byte| *byte == b'\n') {
            if line.is_empty() {
                continue;
            }
            if printer.is_full() {
                is_whole = false;
                break;
            }
            let record: Record<'_> =
                serde_json::from_slice(line).map_err(|error| unreadable(&error))?;
            printer.print(&record)?;
        }
        printer.flush()?;
        if is_whole {
            client.commit(member).await?;
        }
    }
    Ok(())
}
