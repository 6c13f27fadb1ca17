//! Replays the corpus of the fuzz target through what must hold for any octets, and every recorded frame damaged.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../../../fuzz/src/vpp.rs"]
mod vpp;

use std::fs;
use std::path::{Path, PathBuf};

fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/vpp");
    let mut files: Vec<PathBuf> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 40, "{} has too little", folder.display());
    files.into_iter().map(|file| fs::read(file).unwrap()).collect()
}

#[test]
fn the_corpus_holds() {
    for octets in corpus() {
        vpp::stream(&octets);
    }
}

/// Counts and lengths that lie, wherever they stand: one octet at a time is all ones.
#[test]
fn damaged_frames_hold() {
    for octets in corpus() {
        // A prime step, so that in time every kind of field is hit.
        for at in (0..octets.len()).step_by(307) {
            let mut damaged = octets.clone();
            damaged[at] = 0xff;
            vpp::stream(&damaged);
        }
    }
}
