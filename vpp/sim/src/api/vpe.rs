//! `vpe`: what VPP this is.

use vpp_wire::api::vpe::{ShowVersion, ShowVersionReply};

use super::field::push_text;
use super::retval::OK;
use super::row::{Row, row};
use crate::context::Cx;

pub(super) fn rows() -> Vec<Row> {
    vec![row::<ShowVersion, ShowVersionReply>(show_version)]
}

fn show_version(cx: &mut Cx<'_>, _: &[u8]) -> Option<()> {
    cx.answer_with(|out, state| {
        out.extend_from_slice(&OK.to_be_bytes());
        push_text::<32>(out, b"vpe");
        push_text::<32>(out, state.release.version().as_bytes());
        push_text::<32>(out, b"");
        push_text::<256>(out, b"");
    });
    Some(())
}
