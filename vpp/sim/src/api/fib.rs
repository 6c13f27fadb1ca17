//! `fib`: sources of routes.

use vpp_wire::Message;
use vpp_wire::api::fib::{FibSourceAdd, FibSourceAddReply, FibSourceDetails, FibSourceDump};

use super::field::push_text;
use super::retval::OK;
use super::row::{Row, row};
use crate::context::Cx;

pub(super) fn rows() -> Vec<Row> {
    vec![
        row::<FibSourceAdd, FibSourceAddReply>(fib_source_add),
        row::<FibSourceDump, FibSourceDetails>(fib_source_dump),
    ]
}

/// A source is made each time, whatever its name and priority.
fn fib_source_add(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let source = FibSourceAdd::parse(payload).ok()?.src();
    let id = cx.state.fib.sources.add(source.priority, source.name.text().to_vec());
    cx.answer_with(|out, _| {
        out.extend_from_slice(&OK.to_be_bytes());
        out.push(id);
    });
    Some(())
}

fn fib_source_dump(cx: &mut Cx<'_>, _: &[u8]) -> Option<()> {
    for id in 0..=u8::MAX {
        if cx.state.fib.sources.get(id).is_none() {
            break;
        }
        cx.answer_with(|out, state| {
            let Some(source) = state.fib.sources.get(id) else { return };
            out.extend_from_slice(&[source.priority, id]);
            push_text::<64>(out, &source.name);
        });
    }
    Some(())
}
