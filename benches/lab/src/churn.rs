//! Scenario e: a loaded daemon hears changes. First a tenth of the table after the other as fast as it takes them, then
//! one prefix at a time while it is idle, then 5,000 single prefixes a second whether it keeps up or not.
//!
//! The last number of every changed path says which change it was, so the receiver knows what became of each.

use std::time::{Duration, Instant};

use crate::judge::Slot;
use crate::plan::Plan;
use crate::scenario::{Figures, Run};
use crate::table::Route;
use crate::wire;

/// Rounds of churn at full speed; each changes a tenth of the sets.
const ROUNDS: usize = 50;
const PART: usize = 10;
/// Samples of single prefixes, idle and under load.
const IDLE_SAMPLES: usize = 5_000;
const LOADED_SAMPLES: usize = 10_000;
/// After so long, a slow daemon's samples are enough.
const ENOUGH: Duration = Duration::from_secs(30);
/// Pause of an idle daemon between two changes.
const PAUSE: Duration = Duration::from_micros(500);
/// Time between two changes under load.
const PACE: Duration = Duration::from_micros(200);
/// The number of the first change: above all AS numbers of the table.
const FIRST: u32 = 4_000_000_000;

/// Measures and puts the figures to those of the load.
///
/// # Errors
///
/// What it could not do, in words.
pub(crate) fn measure(plan: &Plan, run: &mut Run, figures: &mut Figures) -> Result<(), String> {
    let mut sets_of = vec![0; plan.tables[0].iter().map(|route| route.prefixes.len()).sum()];
    for (number, route) in plan.tables[0].iter().enumerate() {
        for prefix in &route.prefixes {
            sets_of[run.judge.slot(*prefix).index()] = number;
        }
    }
    full_speed(plan, run, figures, &sets_of)?;
    let singles: Vec<&Route> = plan.tables[0].iter().filter(|route| route.prefixes.len() == 1).collect();
    let mut tag = FIRST + 1_000_000;
    idle(plan, run, figures, &singles, &mut tag)?;
    loaded(plan, run, figures, &singles, &mut tag)
}

/// `route` as its change number `tag` makes it; the judge wants that from now on. Appends the message.
fn change(plan: &Plan, run: &mut Run, route: &Route, tag: u32, bytes: &mut Vec<u8>) {
    let mut route = route.clone();
    route.as_path.push(tag);
    let receiver = plan.receivers()[0];
    let set = run.judge.set(&plan.told(receiver, 0, &route, &route.communities));
    for prefix in &route.prefixes {
        let slot = run.judge.slot(*prefix);
        run.judge.want(0, slot, set);
    }
    wire::announce(bytes, &route, plan.neighbors[0].address, plan.local_pref(0));
}

fn full_speed(plan: &Plan, run: &mut Run, figures: &mut Figures, sets_of: &[usize]) -> Result<(), String> {
    let routes = &plan.tables[0];
    let (mut bytes, mut ends_at, mut events) = (Vec::new(), Vec::new(), 0);
    for round in 0..ROUNDS {
        let tag = FIRST + u32::try_from(round).expect("few rounds");
        for route in routes.iter().skip(round % PART).step_by(PART) {
            change(plan, run, route, tag, &mut bytes);
            ends_at.push((bytes.len() as u64, round));
            events += route.prefixes.len();
        }
    }
    // By round, and by the number of the set among those of the round.
    let mut sent: Vec<Vec<Instant>> = vec![Vec::new(); ROUNDS];
    let mut ends_at = ends_at.into_iter().peekable();
    // The last round that each prefix was heard of.
    let mut last: Vec<Option<usize>> = vec![None; sets_of.len()];
    let mut lags: Vec<Duration> = Vec::with_capacity(events);
    let (offset, cpu, start) = (run.ends.written(0), run.daemon.cpu_seconds(), Instant::now());
    run.ends.send(0, bytes.into());
    while !run.judge.satisfied() {
        let mut heard: Option<Instant> = None;
        // What was written in the turn before this one was written by now.
        let (now, written) = (Instant::now(), run.ends.written(0) - offset);
        while let Some((_, round)) = ends_at.next_if(|(end, _)| *end <= written) {
            sent[round].push(now);
        }
        run.turn(Duration::from_millis(100), |slot: Slot, _, seen| {
            let Some(round) = seen.as_path.last().and_then(|tag| tag.checked_sub(FIRST)) else { return };
            let (now, round) = (*heard.get_or_insert_with(Instant::now), round as usize);
            let number = sets_of[slot.index()];
            let first = last[slot.index()].map_or(number % PART, |last| last + PART);
            // A change that was overtaken by a later one of the same prefix took until that came.
            for round in (first..=round).step_by(PART) {
                // One that is heard in the very turn that wrote it has no time yet, and took none to speak of.
                let sent = sent[round].get(number / PART).copied().unwrap_or(now);
                lags.push(now - sent);
            }
            last[slot.index()] = Some(round);
        })?;
        overdue(run, start)?;
    }
    let (seconds, cpu) = (start.elapsed().as_secs_f64(), run.daemon.cpu_seconds() - cpu);
    if lags.len() < events {
        return Err(format!("{} of {events} changes were accounted for", lags.len()));
    }
    figures.more.push(("events/s", events as f64 / seconds));
    figures.more.push(("us CPU/event", cpu * 1e6 / events as f64));
    quantiles(figures, ["lag p50 ms", "lag p99 ms"], &mut lags);
    (figures.cpu_seconds, figures.wall_seconds) = (cpu, seconds);
    figures.peak_mib = run.daemon.peak_mib();
    Ok(())
}

fn idle(
    plan: &Plan,
    run: &mut Run,
    figures: &mut Figures,
    singles: &[&Route],
    tag: &mut u32,
) -> Result<(), String> {
    let mut lags = Vec::with_capacity(IDLE_SAMPLES);
    let (begun, cpu) = (Instant::now(), run.daemon.cpu_seconds());
    for route in singles.iter().cycle().take(IDLE_SAMPLES) {
        if begun.elapsed() > ENOUGH {
            break;
        }
        let mut bytes = Vec::new();
        change(plan, run, route, *tag, &mut bytes);
        *tag += 1;
        run.ends.send(0, bytes.into());
        let sent = Instant::now();
        let mut heard = None;
        while !run.judge.satisfied() {
            run.turn(Duration::from_millis(100), |_, _, _| heard = Some(Instant::now()))?;
            overdue(run, begun)?;
        }
        lags.push(heard.unwrap_or_else(Instant::now) - sent);
        let pause = Instant::now() + PAUSE;
        while let Some(rest) = pause.checked_duration_since(Instant::now()).filter(|rest| !rest.is_zero()) {
            run.turn(rest, |_, _, _| {})?;
        }
    }
    quantiles(figures, ["idle p50 ms", "idle p99 ms"], &mut lags);
    figures.more.push(("idle samples", lags.len() as f64));
    figures.more.push(("idle us CPU/event", (run.daemon.cpu_seconds() - cpu) * 1e6 / lags.len() as f64));
    Ok(())
}

fn loaded(
    plan: &Plan,
    run: &mut Run,
    figures: &mut Figures,
    singles: &[&Route],
    tag: &mut u32,
) -> Result<(), String> {
    let first = *tag;
    let changes: Vec<Vec<u8>> = singles
        .iter()
        .cycle()
        .take(LOADED_SAMPLES)
        .map(|route| {
            let mut bytes = Vec::new();
            change(plan, run, route, *tag, &mut bytes);
            *tag += 1;
            bytes
        })
        .collect();
    let mut sent: Vec<Instant> = Vec::with_capacity(changes.len());
    let mut lags: Vec<Duration> = Vec::with_capacity(changes.len());
    let begun = Instant::now();
    let mut changes = changes.into_iter();
    loop {
        let now = Instant::now();
        let due = begun + PACE * u32::try_from(sent.len()).expect("few samples");
        let mut wait = due.saturating_duration_since(now);
        if wait.is_zero() {
            if let Some(bytes) = changes.next() {
                run.ends.send(0, bytes.into());
                sent.push(now);
            } else if run.judge.satisfied() {
                break;
            } else {
                wait = Duration::from_millis(100);
            }
        }
        let waiting = &sent;
        run.turn(wait, |_, _, seen| {
            let number = seen.as_path.last().and_then(|tag| tag.checked_sub(first));
            if let Some(sent) = number.and_then(|number| waiting.get(number as usize)) {
                lags.push(sent.elapsed());
            }
        })?;
        overdue(run, begun)?;
    }
    quantiles(figures, ["loaded p50 ms", "loaded p99 ms"], &mut lags);
    Ok(())
}

fn overdue(run: &Run, since: Instant) -> Result<(), String> {
    if since.elapsed() < run.patience() {
        return Ok(());
    }
    Err(format!("churn not absorbed within {} s; {}", run.patience().as_secs(), run.judge.complaint()))
}

fn quantiles(figures: &mut Figures, names: [&'static str; 2], lags: &mut [Duration]) {
    lags.sort_unstable();
    for (name, percent) in names.into_iter().zip([50, 99]) {
        let lag = lags.get(lags.len() * percent / 100).copied().unwrap_or_default();
        figures.more.push((name, lag.as_secs_f64() * 1e3));
    }
}
