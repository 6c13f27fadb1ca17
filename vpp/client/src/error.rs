//! What can go wrong, by what the caller can do about it.

use std::io;

use thiserror::Error;
use vpp_wire::frame::FrameError;
use vpp_wire::{Class, MsgName, ParseError, VppError};

/// Why a request has no good answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CallError {
    /// VPP carried it out, or refused to.
    #[error("VPP answers {0}")]
    Retval(VppError),
    /// No answer within the deadline. VPP says nothing to what it cannot read; or it is busy.
    #[error("VPP has not answered in time")]
    Timeout,
    /// The connection ended before the answer: it may have been carried out.
    #[error("the connection to VPP ended before the answer")]
    Lost,
    /// It was not sent: there is no connection, or not the one it was meant for.
    #[error("not connected to VPP, or not to the one this was meant for")]
    NotSent,
    /// It was not sent: this VPP does not know the message in that layout.
    #[error("this VPP has no {0}")]
    Missing(MsgName),
    /// It was not sent: in a state that this connection has not shown yet it would hurt VPP, or go wrong without a word.
    #[error("{0} is only sent once VPP has told what it depends on ({because})", because = because(.0))]
    Unprepared(MsgName),
    /// The answer is too short for what it should be.
    #[error("VPP's answer cannot be read: {0}")]
    Malformed(#[from] ParseError),
}

impl CallError {
    /// What is to be done about it.
    #[must_use]
    pub const fn class(&self) -> Class {
        match self {
            Self::Retval(error) => error.class(),
            Self::Missing(_) | Self::Unprepared(_) | Self::Malformed(_) => Class::Rejected,
            Self::Timeout => Class::Retry,
            Self::Lost | Self::NotSent => Class::Lost,
        }
    }
}

/// Why there is no connection, or no longer one.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The socket cannot be opened, read or written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// VPP closed the connection.
    #[error("VPP closed the connection")]
    Closed,
    /// The byte stream makes no sense.
    #[error("{0}")]
    Frame(#[from] FrameError),
    /// The answer to the handshake cannot be read.
    #[error("VPP's handshake cannot be read: {0}")]
    Malformed(#[from] ParseError),
    /// VPP does not accept the client.
    #[error("VPP refuses the client: response {0}")]
    Refused(i32),
    /// No answer to the handshake, or no sign of life later.
    #[error("VPP does not answer")]
    Silent,
    /// This VPP lacks messages that are required.
    #[error("this VPP lacks {}", list(.0))]
    Missing(Vec<MsgName>),
}

fn because(name: &MsgName) -> &'static str {
    vpp_wire::beforehand::rule(name.name()).map_or("what it names must be there", |rule| rule.because)
}

fn list(names: &[MsgName]) -> String {
    names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
