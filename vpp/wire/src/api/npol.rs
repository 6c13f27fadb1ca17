//! `npol`: network policy. Nothing here sends these messages: their counts, when they do not add up, end VPP.

include!(concat!(env!("OUT_DIR"), "/npol.rs"));
