//! Any request at all, and the greeting.

use super::*;

/// A generator of numbers; the same ones each time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

fn hello(vpp: &mut Vpp) -> Vec<u8> {
    let (mut own, mut others) = (Vec::new(), Vec::new());
    let mut payload = vec![0, 15, 0, 0, 0, 1];
    payload.resize(70, b'x');
    vpp.carry_out(&payload, &mut Outbox::new(ConnId(1), &mut own, &mut others));
    own
}

/// Requests of any length with any bytes, small numbers preferred so that they mean something: nothing panics, every
/// answer is a whole frame, and the state can be shown.
#[test]
fn no_request_is_too_strange() {
    let mut options = SimOptions::new("unused");
    options.interfaces.push("host-eth0=192.0.2.1/24,2001:db8::1/64".parse().expect("an interface"));
    let mut random = Random(1);
    for round in 0..20 {
        let mut vpp = Vpp::new(&options, round);
        hello(&mut vpp);
        let ids: Vec<u16> = vpp.rows.iter().flatten().map(|row| row.id).collect();
        for _ in 0..2000 {
            let id = ids[usize::try_from(random.below(ids.len() as u64)).expect("small")];
            let mut payload = id.to_be_bytes().to_vec();
            payload.extend_from_slice(&(0x8000_0001u32).to_be_bytes());
            let length = random.below(700);
            payload.extend((0..length).map(|_| match random.below(8) {
                0 => 0xff,
                1 | 2 => u8::try_from(random.below(256)).expect("a byte"),
                3 => u8::try_from(random.below(3)).expect("a byte"),
                _ => 0,
            }));
            let (mut own, mut others) = (Vec::new(), Vec::new());
            let outcome = vpp.carry_out(&payload, &mut Outbox::new(ConnId(1), &mut own, &mut others));
            let mut rest = own.as_slice();
            while !rest.is_empty() {
                let Ok(frame::Cut::Frame(answer)) = frame::cut(rest) else {
                    panic!("half an answer to {payload:?}")
                };
                rest = &rest[frame::HEADER + answer.len()..];
            }
            match outcome {
                Outcome::Served | Outcome::Healed => {}
                Outcome::Goodbye(_) => {
                    hello(&mut vpp);
                }
                Outcome::Died(_) => break,
            }
        }
        assert!(
            vpp.json(Detail::Full)["tables"].is_array() && vpp.json(Detail::Meaning)["tables"].is_array()
        );
    }
}

#[test]
fn the_greeting_has_the_table() {
    let mut vpp = Vpp::new(&SimOptions::new("unused"), 1);
    let greeting = hello(&mut vpp);
    let entry = b"ip_route_add_del_v2_521ef330\0";
    assert!(greeting.windows(entry.len()).any(|window| window == entry));
}
