//! FLAT: routed to the next hop as it is.

use crate::row::Row;

pub(crate) const ROW: Row = Row::named("flat");
