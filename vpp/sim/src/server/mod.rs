//! The shell: a listening Unix socket, one task per connection, and the one lock behind which the core works.
//!
//! A real VPP carries requests out on one thread, so one lock is no loss. A connection is read only when its answers are
//! written, so a client that does not read is not served further. Nothing here knows what a message means.
//!
//! * [`process`]: the simulated process: core, faults, connections, death and restart
//! * [`conn`]: one connection
//! * [`listen`]: accepting, as long as the process lives
//! * [`handle`]: what tests and the control socket hold

pub(crate) mod conn;
pub(crate) mod handle;
pub(crate) mod listen;
pub(crate) mod process;
