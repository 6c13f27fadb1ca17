//! `peregrine`: the node agent, the speaker alone, and the commands that ask them.

mod crd;
mod yaml;

fn main() {}
