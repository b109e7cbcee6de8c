//! The node's limits that are no settings; see [`floe_gateway::fixed`].

use floe_gateway::fixed::{Amount, Fixed};

use super::bind::BACKLOG;
use super::doors::{CUT, DRAIN, KAFKA_SHARE, METRICS_CONNECTIONS};

pub(crate) fn fixed() -> Vec<Fixed> {
    vec![
        Fixed {
            what: "requests of the Kafka door",
            limit: Amount::Share(KAFKA_SHARE),
            beyond: "the next frame waits in its socket",
        },
        Fixed {
            what: "connections of the metrics port, beside `max.connections`",
            limit: Amount::Count(METRICS_CONNECTIONS),
            beyond: "the one that has asked nothing for the longest is closed",
        },
        Fixed {
            what: "connections waiting to be accepted, of each port and address",
            limit: Amount::Count(BACKLOG as usize),
            beyond: "the system lets the caller try again",
        },
        Fixed {
            what: "from the wish to stop until requests in flight are cut",
            limit: Amount::Time(DRAIN),
            beyond: "they are cut",
        },
        Fixed {
            what: "from then until their connections are left alone",
            limit: Amount::Time(CUT),
            beyond: "the node stops without them",
        },
    ]
}
