//! What a handler has before it while it carries out one request.

use vpp_wire::frame;

use crate::clients::Clients;
use crate::state::State;
use crate::state::path::Path;
use crate::vpp::Death;

/// What a handler has before it.
pub(crate) struct Cx<'a> {
    /// What the process knows.
    pub(crate) state: &'a mut State,
    /// Who is connected.
    pub(crate) clients: &'a mut Clients,
    /// The handle the request names.
    pub(crate) client: u32,
    /// The buffer of paths that route messages use.
    pub(crate) paths: &'a mut Vec<Path>,
    /// Set by what ends the process.
    pub(crate) death: Option<Death>,
    /// Set by the handle of a client that leaves.
    pub(crate) goodbye: Option<u32>,
    /// Set by a system call that failed.
    pub(crate) healed: bool,
    /// The message id of answers.
    pub(crate) answer_id: u16,
    /// Where answers have the context.
    pub(crate) answer_context_at: usize,
    /// The context of the request.
    pub(crate) context: [u8; 4],
    /// Where answers go.
    pub(crate) out: &'a mut Vec<u8>,
}

impl Cx<'_> {
    /// Answers with the fields that `body` appends behind message id and context.
    pub(crate) fn answer_with(&mut self, body: impl FnOnce(&mut Vec<u8>, &State)) {
        let state = &*self.state;
        frame::push(self.out, |out| {
            push_head(out, self.answer_id, self.answer_context_at, self.context);
            body(out, state);
        });
    }

    /// Answers any number of times: `write` appends whole frames, each payload of which starts with the head it is given.
    pub(crate) fn answer_each(&mut self, write: impl FnOnce(&mut Vec<u8>, &State, &dyn Fn(&mut Vec<u8>))) {
        let (id, at, context) = (self.answer_id, self.answer_context_at, self.context);
        write(self.out, self.state, &|out| push_head(out, id, at, context));
    }

    /// Answers with a message of fixed size; what `fill` leaves alone is zero.
    pub(crate) fn answer<A: vpp_wire::Message + zerocopy::FromZeros>(&mut self, fill: impl FnOnce(&mut A)) {
        let mut answer = A::new_zeroed();
        fill(&mut answer);
        let head = self.answer_context_at + self.context.len();
        self.answer_with(|out, _| out.extend_from_slice(answer.as_bytes().get(head..).unwrap_or(&[])));
    }

    /// Answers with a return value and nothing else.
    pub(crate) fn retval(&mut self, retval: i32) {
        self.answer_with(|out, _| out.extend_from_slice(&retval.to_be_bytes()));
    }

    /// Answers with a return value and a number.
    pub(crate) fn retval_and(&mut self, retval: i32, value: u32) {
        self.answer_with(|out, _| {
            out.extend_from_slice(&retval.to_be_bytes());
            out.extend_from_slice(&value.to_be_bytes());
        });
    }
}

/// Appends what an answer starts with.
pub(crate) fn push_head(out: &mut Vec<u8>, id: u16, context_at: usize, context: [u8; 4]) {
    let start = out.len();
    out.extend_from_slice(&id.to_be_bytes());
    out.resize(start + context_at, 0);
    out.extend_from_slice(&context);
}
