//! The client against a scripted VPP: a Unix socket whose every frame the test decides. Time is virtual: it moves on
//! to the next deadline only when nothing else can happen, so no test waits and none depends on speed.

mod answers;
mod beforehand;
mod leaving;
mod reconnect;
mod vpp;
mod window;

use vpp_wire::api::interface::{DeleteLoopback, DeleteLoopbackReply, SwInterfaceSetFlags};
use vpp_wire::types::SwIfIndex;

use vpp::Vpp;

/// The usual settings, but no pings between what a test wants to see.
fn settings() -> crate::ClientSettings {
    crate::ClientSettings {
        ping_after: std::time::Duration::from_secs(3600),
        ..crate::ClientSettings::default()
    }
}

/// A request whose reply has nothing but a return value.
fn request(index: u32) -> DeleteLoopback {
    DeleteLoopback::new(SwIfIndex::new(index))
}

/// Another one.
fn other(index: u32) -> SwInterfaceSetFlags {
    SwInterfaceSetFlags::new(SwIfIndex::new(index), true)
}

async fn call(client: &crate::Client, index: u32) -> Result<DeleteLoopbackReply, crate::CallError> {
    client.call(&request(index)).await
}

async fn ask(client: &crate::Client, index: u32) -> Result<DeleteLoopbackReply, crate::CallError> {
    client.ask(&request(index)).await
}
