//! `vlib`: graph nodes, threads, logs, the command line.

include!(concat!(env!("OUT_DIR"), "/vlib.rs"));
