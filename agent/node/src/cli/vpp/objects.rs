//! `peregrine vpp --objects`: each object of VPP, and how it stands.

use crate::cli::table::{Cell, Column, Layout, Tone, paragraph};
use crate::inspect::answer::VppObject;

/// Where the note below an object begins.
const INDENT: usize = 13;

/// All of them, each with a note where it is blocked.
pub(super) fn show(objects: &[VppObject], colours: bool) -> String {
    if objects.is_empty() {
        return "There are no objects in VPP, and none are wanted.\n".to_owned();
    }
    let columns = [Column::text("STATE").at_least(10), Column::text("WANTED"), Column::text("OBJECT")];
    let row = |object: &VppObject| {
        let tone = match object.state.as_str() {
            "present" => Tone::Good,
            "blocked" => Tone::Bad,
            _ => Tone::Plain,
        };
        vec![
            Cell::toned(object.state.clone(), tone),
            Cell::from(if object.wanted { "yes" } else { "no" }.to_owned()),
            Cell::from(with_value(&object.object, &object.value)),
        ]
    };
    let rows: Vec<Vec<Cell>> = objects.iter().map(row).collect();
    let layout = Layout::for_rows(&columns, &rows, colours);
    let mut out = layout.head();
    for (object, cells) in objects.iter().zip(&rows) {
        out += &layout.row(cells);
        if !object.reason.is_empty() {
            let next = next_try(object.attempts, object.next_try_seconds);
            out += &paragraph(INDENT, &format!("{}{next}", object.reason));
        }
    }
    out
}

/// An object's name, with its value where it has one.
pub(super) fn with_value(object: &str, value: &str) -> String {
    if value.is_empty() { object.to_owned() } else { format!("{object} ({value})") }
}

/// What is to be said of attempts: how many were in vain, and when the next one is due.
pub(super) fn next_try(attempts: u8, seconds: Option<u64>) -> String {
    let failed = match attempts {
        0 => String::new(),
        1 => "; failed once".to_owned(),
        2 => "; failed twice".to_owned(),
        u8::MAX => "; failed many times".to_owned(),
        times => format!("; failed {times} times"),
    };
    match seconds {
        Some(seconds) if failed.is_empty() => format!("; tried again in {seconds} s"),
        Some(seconds) => format!("{failed}, tried again in {seconds} s"),
        None => failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_object_is_shown_with_its_value_and_its_next_try() {
        let object = |object: &str, state: &str| VppObject {
            object: object.into(),
            state: state.into(),
            wanted: true,
            ..VppObject::default()
        };
        let objects = [
            object("uplink", "present"),
            VppObject {
                reason: "VPP answered -9999".into(),
                attempts: 3,
                next_try_seconds: Some(4),
                ..object("ipip tunnel 192.0.2.1 to 192.0.2.2", "blocked")
            },
            VppObject {
                value: "1480 octets".into(),
                wanted: false,
                ..object("mtu of ipip tunnel 192.0.2.1 to 192.0.2.3", "left-over")
            },
        ];
        assert_eq!(
            show(&objects, false),
            "\
STATE       WANTED  OBJECT
present     yes     uplink
blocked     yes     ipip tunnel 192.0.2.1 to 192.0.2.2
             VPP answered -9999; failed 3 times, tried again in 4 s
left-over   no      mtu of ipip tunnel 192.0.2.1 to 192.0.2.3 (1480 octets)
"
        );
        assert_eq!(show(&[], false), "There are no objects in VPP, and none are wanted.\n");
        assert_eq!(next_try(0, None), "");
        assert_eq!(next_try(0, Some(2)), "; tried again in 2 s");
        assert_eq!(next_try(1, None), "; failed once");
    }
}
