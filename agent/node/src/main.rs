//! `peregrine`: the node agent, the speaker alone, and the commands that ask them.

mod crd;
mod watch;
mod yaml;

fn main() {}
