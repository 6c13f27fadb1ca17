//! Keeps to the table of what must have been asked on a connection before a request is sent on it
//! ([`vpp_wire::beforehand`]): by message id, so that it costs nothing but a look per request and per reply.

use vpp_wire::api::messages;
use vpp_wire::beforehand::RULES;
use vpp_wire::{MessageTable, MsgId};

/// What this connection has been told so far, as far as rules ask for it.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// By message id: the rule of a request, or the rules that an answer satisfies, as a set of bits.
    rules: Vec<u32>,
    satisfied: u32,
}

impl Told {
    pub(super) fn nothing(table: &MessageTable) -> Self {
        let mut rules = Vec::new();
        for message in messages() {
            let Some(id) = table.id(&message.name) else {
                continue;
            };
            let mut bits = 0;
            for (at, rule) in RULES.iter().enumerate() {
                let name = message.name.name();
                if rule.request == name || rule.answers.contains(&name) {
                    bits |= 1_u32 << at;
                }
            }
            let at = usize::from(id.value());
            if bits != 0 {
                if rules.len() <= at {
                    rules.resize(at + 1, 0);
                }
                rules[at] = bits;
            }
        }
        Self { rules, satisfied: 0 }
    }

    /// Whether a request may be sent.
    pub(super) fn allows(&self, request: MsgId) -> bool {
        self.bits(request) & !self.satisfied == 0
    }

    /// An answer has come: a good reply, or all details of a dump.
    pub(super) fn hear(&mut self, answer: MsgId) {
        self.satisfied |= self.bits(answer);
    }

    fn bits(&self, id: MsgId) -> u32 {
        self.rules.get(usize::from(id.value())).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_bit_for_each_rule() {
        assert!(RULES.len() <= 32);
    }
}
