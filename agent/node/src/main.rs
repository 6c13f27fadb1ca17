//! `peregrine`: the node agent, the speaker alone, and the commands that ask them.

mod cli {
    pub(crate) const DEFAULT_SOCKET: &str = "/var/run/peregrine/peregrine.sock";
}
mod crd;
mod env;
mod log;
mod watch;
mod yaml;

fn main() {}
