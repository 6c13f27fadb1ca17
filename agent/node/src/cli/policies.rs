//! `peregrine policies`.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;

use super::output::{print, run as run_command};
use super::table::paragraph;
use super::{Asking, Format};
use crate::inspect::answer::{NeighborChain, Policies, Policy};
use crate::inspect::client::{ask_text, read};

/// The route policies of each neighbor and direction as they are in force, with the object that each statement came from.
///
/// A path meets the statements from top to bottom; the first that matches and accepts or rejects decides, and `next` goes
/// on. Neighbors with the same policies are shown together. JSON has all policies once, and of each neighbor their names.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    asking: Asking,
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let Asking { socket, output } = &arguments.asking;
    run_command(async {
        let answer = ask_text(socket, "/v1/policies").await?;
        match output {
            Format::Json => print(&(answer.trim_end().to_owned() + "\n")),
            Format::Table => print(&show(&read(&answer)?)),
        }
    })
}

fn show(all: &Policies) -> String {
    let known: BTreeMap<&str, &Policy> =
        all.policies.iter().map(|policy| (policy.name.as_str(), policy)).collect();
    // Who has the same, in the order of the first.
    let mut alike: Vec<(&str, &NeighborChain, Vec<&str>)> = Vec::new();
    for neighbor in &all.neighbors {
        for (direction, chain) in [("import", &neighbor.import), ("export", &neighbor.export)] {
            match alike.iter_mut().find(|(way, other, _)| *way == direction && *other == chain) {
                Some((_, _, who)) => who.push(&neighbor.neighbor),
                None => alike.push((direction, chain, vec![&neighbor.neighbor])),
            }
        }
    }
    if alike.is_empty() {
        return "no neighbors\n".into();
    }
    let mut out = String::new();
    for (direction, chain, who) in alike {
        if !out.is_empty() {
            out.push('\n');
        }
        let way = if direction == "import" { "from" } else { "to" };
        out += &paragraph(0, &format!("{direction} {way} {}", who.join(", ")));
        let global = if direction == "import" { &all.import } else { &all.export };
        for name in global.iter().chain(&chain.policies) {
            out += &paragraph(2, &format!("policy {name}"));
            let Some(policy) = known.get(name.as_str()) else { continue };
            out += &statements(policy);
            if policy.default != "next" {
                out += &paragraph(4, &format!("otherwise {}", policy.default));
            }
        }
        out += &paragraph(2, &format!("otherwise {}", chain.default));
    }
    out
}

fn statements(policy: &Policy) -> String {
    let mut out = String::new();
    for statement in &policy.statements {
        let mut words = String::new();
        if !statement.when.is_empty() {
            words += &format!("if {}: ", statement.when.join("; "));
        }
        if !statement.set.is_empty() {
            words += &format!("set {}; ", statement.set.join(", "));
        }
        words += &statement.then;
        match &statement.label {
            Some(label) => {
                out += &paragraph(4, &format!("{} {label}", statement.number));
                out += &paragraph(6, &words);
            }
            None => out += &paragraph(4, &format!("{} {words}", statement.number)),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbors_with_the_same_policies_are_shown_together() {
        let answer = r#"{
          "export": ["mark"],
          "neighbors": [
            { "neighbor": "192.0.2.2", "import": { "policies": ["import-no-default"], "default": "accept" },
              "export": { "policies": [], "default": "reject" } },
            { "neighbor": "192.0.2.3", "import": { "policies": ["import-no-default"], "default": "accept" },
              "export": { "policies": [], "default": "accept" } }
          ],
          "policies": [
            { "name": "import-no-default", "default": "next", "statements": [
              { "number": 1, "label": "BGPFilter no-default, importV4 rule 1",
                "if": ["ipv4-unicast", "prefix in 0.0.0.0/0"], "set": [], "then": "reject" } ] },
            { "name": "mark", "default": "accept", "statements": [
              { "number": 1, "if": [], "set": ["add community 65000:1", "med +5"], "then": "next" } ] }
          ]
        }"#;
        assert_eq!(
            show(&read(answer).unwrap()),
            "import from 192.0.2.2, 192.0.2.3
  policy import-no-default
    1 BGPFilter no-default, importV4 rule 1
      if ipv4-unicast; prefix in 0.0.0.0/0: reject
  otherwise accept

export to 192.0.2.2
  policy mark
    1 set add community 65000:1, med +5; next
    otherwise accept
  otherwise reject

export to 192.0.2.3
  policy mark
    1 set add community 65000:1, med +5; next
    otherwise accept
  otherwise accept
"
        );
        assert_eq!(show(&Policies::default()), "no neighbors\n");
    }

    #[test]
    fn no_line_is_too_wide() {
        let prefixes: Vec<String> = (0..50).map(|at| format!("10.{at}.0.0/16")).collect();
        let mut all = Policies::default();
        let chain = NeighborChain { policies: vec!["p".into()], default: "accept".into() };
        for at in 0..40 {
            all.neighbors.push(crate::inspect::answer::NeighborPolicies {
                neighbor: format!("192.0.2.{at}"),
                import: chain.clone(),
                export: chain.clone(),
            });
        }
        all.policies.push(Policy {
            name: "p".into(),
            statements: vec![crate::inspect::answer::Statement {
                number: 1,
                when: vec![format!("prefix in {}", prefixes.join(", "))],
                then: "accept".into(),
                ..crate::inspect::answer::Statement::default()
            }],
            default: "next".into(),
        });
        let text = show(&all);
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert_eq!(text.matches("otherwise").count(), 2);
    }
}
