//! The wire of VPP's binary API: bytes of the Unix stream socket ⇄ typed messages.
//!
//! Every message is a packed `struct` of big-endian fields with alignment 1, read in place and written as it
//! lies in memory (zerocopy), so there is no decoder to get wrong and nothing to allocate. What VPP trusts its
//! clients with and would die of (see `vpp/catalogue/README.md`) cannot be built from the public
//! constructors: they answer [`Refused`] instead.
//!
//! * [`frame`]: the 16-byte socket header, and cutting a byte stream into payloads
//! * [`head`]: the fields every message starts with
//! * [`name`]: message name + CRC, and the id table learnt at connect
//! * [`message`]: the traits `Message`, `Request`, `Dump`, `Reply`, `Notice`
//! * [`layout`]: each message's layout as data; the tests hold it against the catalogue of four VPP releases
//! * [`types`]: fields that many messages share
//! * [`retval`]: return values
//! * [`beforehand`]: what must have been asked before some requests
//! * [`api`]: the messages, one module per VPP API file
//!
//! *Never here:* sockets, clocks, threads, retries (`vpp-client`), or what a message means to a node agent.

#[macro_use]
mod macros;

pub mod api;
pub mod beforehand;
pub mod frame;
pub mod head;
pub mod layout;
pub mod message;
pub mod name;
pub mod retval;
pub mod types;

pub use head::{ClientIndex, Context, MsgId};
pub use message::{
    Cursor, Dump, Kind, Message, Notice, ParseError, Payload, Refused, Reply, Request, Stream,
};
pub use name::{MessageTable, MsgName};
pub use retval::{Class, Retval, VppError};
pub use zerocopy::{FromBytes, IntoBytes};
