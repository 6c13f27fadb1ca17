//! The five message kinds, and the one entry point that parses any of them.

use crate::{
    capability::Negotiated,
    error::WireError,
    frame::{Frame, MessageType},
    notification::Notification,
    open::Open,
    refresh::RouteRefresh,
    update::UpdateView,
};

/// A parsed message. Only UPDATE borrows from the received octets; the others are rare and small.
#[derive(Clone, Debug)]
pub enum Message<'a> {
    /// OPEN.
    Open(Open),
    /// UPDATE.
    Update(UpdateView<'a>),
    /// NOTIFICATION.
    Notification(Notification),
    /// KEEPALIVE, which has nothing but its header.
    Keepalive,
    /// ROUTE-REFRESH.
    RouteRefresh(RouteRefresh),
}

/// Parses the body of a frame. `neg` matters for UPDATE only; before a session is agreed,
/// [`Negotiated::default`] does.
///
/// # Errors
/// What the parser of the kind says.
#[inline]
pub fn parse_message<'a>(frame: Frame<'a>, neg: &Negotiated) -> Result<Message<'a>, WireError> {
    Ok(match frame.kind {
        MessageType::Open => Message::Open(Open::parse(frame.body)?),
        MessageType::Update => Message::Update(UpdateView::parse(frame.body, neg)?),
        MessageType::Notification => Message::Notification(Notification::parse(frame.body)?),
        MessageType::Keepalive => Message::Keepalive,
        MessageType::RouteRefresh => Message::RouteRefresh(RouteRefresh::parse(frame)?),
    })
}
