//! DescribeCluster (key 60, versions 0 to 2; KIP-700, KIP-919): the nodes and who decides.

use floe_wire::ErrorCode;
use kacrab_protocol::generated::describe_cluster_request::DescribeClusterRequestData;
use kacrab_protocol::generated::describe_cluster_response::{
    DescribeClusterBroker, DescribeClusterResponseData,
};

use super::answer::{Answer, code, text};
use super::door::Door;
use super::metadata::{CLUSTER_OPERATIONS, addresses, controller};
use super::request::{Close, Request};

/// Endpoint type "brokers"; controllers have no door of their own here.
const BROKERS: i8 = 1;

pub(super) fn handle(door: &Door, request: &Request) -> Result<Answer, Close> {
    let asked = request.read(DescribeClusterRequestData::read)?;
    let message = if request.version >= 1 && asked.endpoint_type != BROKERS {
        DescribeClusterResponseData::default()
            .with_error_code(code(ErrorCode::UnsupportedEndpointType))
            .with_error_message(Some(text("only endpoint type 1 (brokers) is served here")))
    } else {
        let catalog = door.broker().catalog();
        let brokers = addresses(door, request, &catalog)
            .into_iter()
            .map(|(id, host, port)| {
                DescribeClusterBroker::default()
                    .with_broker_id(id)
                    .with_host(text(&host))
                    .with_port(port)
            });
        let message = DescribeClusterResponseData::default()
            .with_cluster_id(text(&catalog.cluster.to_string()))
            .with_controller_id(controller(door, &catalog))
            .with_brokers(brokers.collect());
        if asked.include_cluster_authorized_operations {
            message.with_cluster_authorized_operations(CLUSTER_OPERATIONS)
        } else {
            message
        }
    };
    Answer::encode(request, |out, version| message.write(out, version))
}
