//! Starting, stopping, and what may not be started.

use floe_tests::Node;

#[test]
#[ignore = "until floe dev runs"]
fn a_node_is_ready_and_stops_cleanly() {
    let mut node = Node::start();
    assert!(node.is_alive());
    assert!(node.stop().success());
}
