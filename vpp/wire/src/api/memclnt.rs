//! `memclnt`: handshake, farewell and the ping that ends dumps. The ids of this module are fixed.

use zerocopy::big_endian::{I32, U16, U32};

use crate::head::{ClientIndex, Context, MsgId, ReplyHead, RequestHead};
use crate::retval::Retval;
use crate::types::FixedString;

/// Ids that are the same in every VPP, needed before its table is known.
pub mod id {
    use crate::head::MsgId;

    /// `sockclnt_create`
    pub const SOCKCLNT_CREATE: MsgId = MsgId::new(15);
    /// `sockclnt_create_reply`
    pub const SOCKCLNT_CREATE_REPLY: MsgId = MsgId::new(16);
    /// `sockclnt_delete`
    pub const SOCKCLNT_DELETE: MsgId = MsgId::new(17);
    /// `sockclnt_delete_reply`
    pub const SOCKCLNT_DELETE_REPLY: MsgId = MsgId::new(18);
    /// `control_ping`
    pub const CONTROL_PING: MsgId = MsgId::new(23);
    /// `control_ping_reply`
    pub const CONTROL_PING_REPLY: MsgId = MsgId::new(24);
}

wire_struct! {
    /// One line of the table of messages.
    pub struct MessageTableEntry {
        /// The id, valid in this VPP process only.
        pub index: MsgId,
        /// `<name>_<crc>`, cut to 63 characters.
        pub name: FixedString<64>,
    }
}

include!(concat!(env!("OUT_DIR"), "/memclnt.rs"));

messages! {
    MESSAGES;
    /// The first message on a connection. The only request without a client handle.
    hello SockclntCreate "sockclnt_create" 0x455f_b9c4 => SockclntCreateReply {
        /// What VPP calls this client in its logs.
        pub name: FixedString<64>,
    }
    /// The handle and the table of messages.
    greeting SockclntCreateReply "sockclnt_create_reply" 0x3516_6268 {
        /// 0 is success.
        pub response: I32,
        /// This client's handle, for the head of every later request.
        pub index: ClientIndex,
        /// Length of the table.
        pub count: U16,
        ..
        /// All messages of this VPP.
        pub message_table: [MessageTableEntry] by count
    }
    /// Takes leave. A connection closed without it can leave a descriptor behind in VPP on which its main
    /// thread spins; sixteen of them stop it.
    request SockclntDelete "sockclnt_delete" 0x8ac7_6db6 => SockclntDeleteReply {
        /// The client's handle.
        pub index: ClientIndex,
    }
    /// VPP closes the connection behind it.
    plain_reply SockclntDeleteReply "sockclnt_delete_reply" 0x8f38_b1ee {
        /// 1 is success.
        pub response: I32,
    }
    /// Asks for a sign of life; behind a dump it marks the end of the details.
    request ControlPing "control_ping" 0x5107_7d14 => ControlPingReply { }
    /// The sign of life.
    reply ControlPingReply "control_ping_reply" 0xf6b0_b8ca {
        /// Always 0.
        pub retval: Retval,
        /// Not this client's handle: 0.
        pub client_index: ClientIndex,
        /// Process id of VPP.
        pub vpe_pid: U32,
    }
}

impl SockclntCreate {
    /// Ready to be sent: its id is fixed.
    #[must_use]
    pub fn new(context: Context, name: FixedString<64>) -> Self {
        Self { head: ReplyHead { _vl_msg_id: id::SOCKCLNT_CREATE, context }, name }
    }
}

impl SockclntDelete {
    /// Ready to be sent: its id is fixed.
    #[must_use]
    pub fn new(context: Context, client_index: ClientIndex) -> Self {
        Self {
            head: RequestHead { _vl_msg_id: id::SOCKCLNT_DELETE, client_index, context },
            index: client_index,
        }
    }
}

impl ControlPing {
    /// Ready to be sent: its id is fixed.
    #[must_use]
    pub fn new(context: Context, client_index: ClientIndex) -> Self {
        Self { head: RequestHead { _vl_msg_id: id::CONTROL_PING, client_index, context } }
    }
}

impl Default for ControlPing {
    /// For a client to address.
    fn default() -> Self {
        Self { head: RequestHead::BLANK }
    }
}
