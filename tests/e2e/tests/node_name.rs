//! The node's own object: without it nothing is concluded from what is absent.

use e2e::World;
use test_support::lab::Lab;
use test_support::programs::{IP, available};
use test_support::wait;

#[test]
fn an_agent_with_another_nodes_name_leaves_vpp_alone_and_says_so() {
    if !available("e2e node name", &[IP]) {
        return;
    }
    Lab::run(|lab| {
        let mut world = World::new(lab);
        world.node.start();
        let before = world.await_everything();
        world.node.kill();

        let settings = world.host().dir().join("agent.yaml");
        let text = std::fs::read_to_string(&settings).expect("it was written");
        std::fs::write(&settings, text.replace("node: node-a", "node: node-q"))
            .expect("the host's folder is ours");
        world.node.start();
        wait::until("the agent says what is wrong", || {
            let vpp = world.node.try_ask(&["vpp"])?;
            let text = vpp.to_string();
            let said = text.contains("there are: node-a, node-b") && vpp["converged"] == false;
            if said && vpp["state"] == "up" { Ok(()) } else { Err(text) }
        });
        // An audit ends only after everything that can be done has been.
        let vpp = world.node.ask(&["vpp", "--drift"]);
        assert_eq!(vpp["audit"]["found"], 0, "{vpp}");
        assert_eq!(world.sim.meaning(), before);
    });
}
