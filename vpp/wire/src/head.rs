//! What messages start with. Ids, handles and contexts are the client's business, so requests are built with a
//! blank head, which is filled in when the frame is sent.

use crate::layout::Described;

wire_int! {
    /// A message id of one VPP process. Only ids 1 to 28 (`memclnt`) are the same everywhere.
    pub struct MsgId: u16 { }
    /// The handle VPP gave this client at connect. It tells VPP whom to answer, so a wrong one is somebody else's.
    pub struct ClientIndex: u32 { }
    /// Chosen by the client and echoed in the answer. The top bit stays clear, so that no context looks like a
    /// client handle.
    pub struct Context: u32 { }
}

/// A head, as [`crate::Message`] needs to know it.
pub trait Head: Described {
    /// Where the context stands in the payload; `None` in notices, which have none.
    const CONTEXT_AT: Option<usize>;
}

wire_struct! {
    /// Of requests and dumps.
    pub struct RequestHead {
        /// Message id.
        pub _vl_msg_id: MsgId,
        /// The handle learnt at connect.
        pub client_index: ClientIndex,
        /// Comes back in the answer.
        pub context: Context,
    }
    /// Of replies and details, and of `sockclnt_create`.
    pub struct ReplyHead {
        /// Message id.
        pub _vl_msg_id: MsgId,
        /// That of the request.
        pub context: Context,
    }
    /// Of the few replies and details that also echo the handle.
    pub struct EchoHead {
        /// Message id.
        pub _vl_msg_id: MsgId,
        /// That of the request; 0 in `sockclnt_create_reply`.
        pub client_index: ClientIndex,
        /// That of the request.
        pub context: Context,
    }
    /// Of notices (VPP's events): no context.
    pub struct NoticeHead {
        /// Message id.
        pub _vl_msg_id: MsgId,
        /// The client's own handle.
        pub client_index: ClientIndex,
    }
}

impl Head for RequestHead {
    const CONTEXT_AT: Option<usize> = Some(6);
}
impl Head for ReplyHead {
    const CONTEXT_AT: Option<usize> = Some(2);
}
impl Head for EchoHead {
    const CONTEXT_AT: Option<usize> = Some(6);
}
impl Head for NoticeHead {
    const CONTEXT_AT: Option<usize> = None;
}

impl RequestHead {
    /// To be filled in when the frame is sent.
    pub const BLANK: Self =
        Self { _vl_msg_id: MsgId::new(0), client_index: ClientIndex::new(0), context: Context::new(0) };
}

/// The message id of a payload; `None` when it is shorter than two bytes.
#[must_use]
pub fn message_id(payload: &[u8]) -> Option<MsgId> {
    payload.first_chunk::<2>().map(|id| MsgId::new(u16::from_be_bytes(*id)))
}

/// The context at that offset of a payload.
#[must_use]
pub fn context_at(payload: &[u8], at: usize) -> Option<Context> {
    let bytes = payload.get(at..)?.first_chunk::<4>()?;
    Some(Context::new(u32::from_be_bytes(*bytes)))
}

/// Fills in the head of a request that lies in a buffer, `payload` starting at its message id.
/// Returns `false`, with nothing written, when it is shorter than a head.
#[must_use]
pub fn address(payload: &mut [u8], id: MsgId, client: ClientIndex, context: Context) -> bool {
    let Some(head) = payload.first_chunk_mut::<10>() else {
        return false;
    };
    head[..2].copy_from_slice(&id.value().to_be_bytes());
    head[2..6].copy_from_slice(&client.value().to_be_bytes());
    head[6..].copy_from_slice(&context.value().to_be_bytes());
    true
}
