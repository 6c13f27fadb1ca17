//! The table: medians of each daemon in each scenario, set against BIRD's and against the bounds that ours must keep.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::daemon::Kind;
use crate::scenario::{Figures, Scenario};

/// At most so much of BIRD's CPU time where tables are moved.
const CPU_OF_BIRD: f64 = 0.8;
/// At most so much of BIRD's memory there.
const MEMORY_OF_BIRD: f64 = 1.0;
/// A cluster node from its start: seconds, CPU seconds, MiB.
const NODE: (f64, f64, f64) = (0.1, 0.03, 24.0);
/// A route reflector: so much of FRR's CPU time, and MiB.
const REFLECTOR: (f64, f64) = (1.5, 24.0);
/// What an import policy of 120 rules may cost, as a multiple of the same without.
const POLICY: f64 = 1.3;

/// The runs of one daemon in one scenario: figures, or why there are none.
pub(crate) type Runs = Vec<Result<Figures, String>>;

/// All that was measured.
#[derive(Default)]
pub(crate) struct Report {
    all: BTreeMap<(Scenario, Kind), Runs>,
}

impl Report {
    /// Adds a run.
    pub(crate) fn add(&mut self, scenario: Scenario, kind: Kind, run: Result<Figures, String>) {
        self.all.entry((scenario, kind)).or_default().push(run);
    }

    /// Whether a run of the daemon in the scenario failed.
    #[must_use]
    pub(crate) fn has_failed(&self, scenario: Scenario, kind: Kind) -> bool {
        self.all.get(&(scenario, kind)).is_some_and(|runs| runs.iter().any(Result::is_err))
    }

    /// Whether ours kept every bound that could be checked.
    #[must_use]
    pub(crate) fn is_good(&self) -> bool {
        self.all.keys().filter(|(_, kind)| *kind == Kind::Peregrine).all(|(scenario, _)| {
            let median = self.median(*scenario, Kind::Peregrine);
            median.is_some_and(|ours| {
                self.bounds(*scenario, &ours).iter().all(|bound| bound.value <= bound.most)
            })
        })
    }

    /// For people.
    #[must_use]
    pub(crate) fn text(&self) -> String {
        let mut text = format!(
            "{:<2} {:<25} {:<10} {:>8} {:>9} {:>8} {:>10} {:>10}  {}\n",
            "", "scenario", "daemon", "CPU s", "peak MiB", "wall s", "CPU/BIRD", "mem/BIRD", "verdict"
        );
        for ((scenario, kind), runs) in &self.all {
            let head = format!("{:<2} {:<25} {:<10}", scenario.letter(), scenario.title(), kind.name());
            let Some(figures) = self.median(*scenario, *kind) else {
                let why = runs.iter().find_map(|run| run.as_ref().err()).map_or("", String::as_str);
                text += &format!("{head} can't: {}\n", why.chars().take(400).collect::<String>());
                continue;
            };
            let bird = self.median(*scenario, Kind::Bird).filter(|_| *kind != Kind::Bird);
            let ratio = |ours: f64, theirs: Option<f64>| {
                theirs.map_or_else(|| "-".to_owned(), |theirs| format!("{:.2}", ours / theirs))
            };
            let failed = runs.iter().filter(|run| run.is_err()).count();
            let mut verdict =
                if *kind == Kind::Peregrine { self.verdict(*scenario, &figures) } else { String::new() };
            if failed > 0 {
                verdict += &format!(" ({failed} of {} runs failed)", runs.len());
            }
            text += &format!(
                "{head} {:>8.3} {:>9.1} {:>8.3} {:>10} {:>10}  {verdict}\n",
                figures.cpu_seconds,
                figures.peak_mib,
                figures.wall_seconds,
                ratio(figures.cpu_seconds, bird.as_ref().map(|bird| bird.cpu_seconds)),
                ratio(figures.peak_mib, bird.as_ref().map(|bird| bird.peak_mib)),
            );
            if !figures.more.is_empty() {
                let more: Vec<String> =
                    figures.more.iter().map(|(name, value)| format!("{name} {}", short(*value))).collect();
                text += &format!("{:<39}{}\n", "", more.join(", "));
            }
        }
        text
    }

    fn verdict(&self, scenario: Scenario, ours: &Figures) -> String {
        let bounds = self.bounds(scenario, ours);
        if bounds.is_empty() {
            return "no bound to check".to_owned();
        }
        let missed: Vec<String> = bounds
            .iter()
            .filter(|bound| bound.value > bound.most)
            .map(|bound| format!("{} {} > {}", bound.what, short(bound.value), short(bound.most)))
            .collect();
        if missed.is_empty() { "pass".to_owned() } else { format!("MISS: {}", missed.join("; ")) }
    }

    /// For programs.
    #[must_use]
    pub(crate) fn json(&self) -> Value {
        let figures = |figures: &Figures| {
            let more: BTreeMap<&str, f64> = figures.more.iter().copied().collect();
            json!({
                "cpuSeconds": figures.cpu_seconds, "peakMib": figures.peak_mib,
                "wallSeconds": figures.wall_seconds, "more": more,
            })
        };
        let rows = self.all.iter().map(|((scenario, kind), runs)| {
            let median = self.median(*scenario, *kind);
            let bounds = median.iter().filter(|_| *kind == Kind::Peregrine);
            let bounds: Vec<Value> = bounds
                .flat_map(|ours| self.bounds(*scenario, ours))
                .map(|bound| {
                    json!({ "what": bound.what, "value": bound.value, "most": bound.most, "kept": bound.value <= bound.most })
                })
                .collect();
            let runs: Vec<Value> = runs
                .iter()
                .map(|run| run.as_ref().map_or_else(|why| json!({ "failed": why }), figures))
                .collect();
            json!({
                "scenario": scenario.letter().to_string(), "title": scenario.title(), "daemon": kind.name(),
                "median": median.as_ref().map(figures), "bounds": bounds, "runs": runs,
            })
        });
        json!({ "rows": rows.collect::<Vec<_>>(), "good": self.is_good() })
    }

    fn median(&self, scenario: Scenario, kind: Kind) -> Option<Figures> {
        let runs: Vec<&Figures> =
            self.all.get(&(scenario, kind))?.iter().filter_map(|run| run.as_ref().ok()).collect();
        let of = |pick: &dyn Fn(&Figures) -> Option<f64>| {
            let mut values: Vec<f64> = runs.iter().filter_map(|run| pick(run)).collect();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied()
        };
        let more = runs.first()?.more.iter().enumerate().filter_map(|(index, (name, _))| {
            Some((*name, of(&|figures: &Figures| figures.more.get(index).map(|(_, value)| *value))?))
        });
        Some(Figures {
            cpu_seconds: of(&|figures| Some(figures.cpu_seconds))?,
            peak_mib: of(&|figures| Some(figures.peak_mib))?,
            wall_seconds: of(&|figures| Some(figures.wall_seconds))?,
            more: more.collect(),
        })
    }

    /// What ours must keep, as far as the daemons it is compared with were measured.
    fn bounds(&self, scenario: Scenario, ours: &Figures) -> Vec<Bound> {
        let mut bounds = Vec::new();
        let mut put = |what, value, most| bounds.push(Bound { what, value, most });
        let bird = self.median(scenario, Kind::Bird);
        match scenario {
            Scenario::A | Scenario::B | Scenario::C | Scenario::D | Scenario::H | Scenario::I => {
                if let Some(bird) = bird {
                    put("CPU/BIRD", ours.cpu_seconds / bird.cpu_seconds, CPU_OF_BIRD);
                    put("mem/BIRD", ours.peak_mib / bird.peak_mib, MEMORY_OF_BIRD);
                }
            }
            Scenario::E => {
                for (index, (name, value)) in ours.more.iter().enumerate() {
                    let theirs = bird.as_ref().and_then(|bird| bird.more.get(index));
                    if let Some((_, theirs)) = theirs.filter(|_| name.contains("p99")) {
                        put(*name, *value, *theirs);
                    }
                }
            }
            Scenario::F => {
                put("wall s", ours.wall_seconds, NODE.0);
                put("CPU s", ours.cpu_seconds, NODE.1);
                put("MiB", ours.peak_mib, NODE.2);
            }
            Scenario::G => {
                if let Some(frr) = self.median(scenario, Kind::Frr) {
                    put("CPU/FRR", ours.cpu_seconds / frr.cpu_seconds, REFLECTOR.0);
                }
                put("MiB", ours.peak_mib, REFLECTOR.1);
            }
            Scenario::K => {
                if let Some(plain) = self.median(Scenario::B, Kind::Peregrine) {
                    put("CPU/own b", ours.cpu_seconds / plain.cpu_seconds, POLICY);
                }
            }
        }
        bounds
    }
}

struct Bound {
    what: &'static str,
    value: f64,
    most: f64,
}

fn short(value: f64) -> String {
    if value >= 1000.0 { format!("{value:.0}") } else { format!("{value:.3}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(cpu_seconds: f64, peak_mib: f64) -> Result<Figures, String> {
        Ok(Figures { cpu_seconds, peak_mib, ..Figures::default() })
    }

    #[test]
    fn medians_are_held_against_the_bounds() {
        let mut report = Report::default();
        for (bird, ours) in [(1.0, 0.5), (9.0, 0.9), (1.1, 0.6)] {
            report.add(Scenario::A, Kind::Bird, figures(bird, 10.0));
            report.add(Scenario::A, Kind::Peregrine, figures(ours, 9.0));
        }
        assert!(report.is_good() && report.text().contains("0.55") && report.text().contains("pass"));
        report.add(Scenario::H, Kind::Bird, figures(1.0, 10.0));
        report.add(Scenario::H, Kind::Peregrine, figures(0.5, 11.0));
        assert!(!report.is_good() && report.text().contains("MISS: mem/BIRD 1.100 > 1.000"));
    }

    #[test]
    fn who_cannot_is_told_so_and_is_not_good() {
        let mut report = Report::default();
        report.add(Scenario::F, Kind::Peregrine, Err("not within 5 s".to_owned()));
        assert!(!report.is_good() && report.text().contains("can't: not within 5 s"));
    }
}
