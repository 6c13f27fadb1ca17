//! How paths are compared, and how many are used at once: keys of the whole file.

use std::num::NonZeroU8;

use bgp_core::rib::DecisionSettings;

use crate::yaml::Fields;

/// Takes the keys that are about the decision; what is left out is as RFC 4271 has it.
pub(super) fn decode(fields: &mut Fields<'_>) -> DecisionSettings {
    let usual = DecisionSettings::RFC4271;
    let multipath = fields.take("multipath");
    let multipath = multipath
        .and_then(|item| item.number("a number of paths, 1 to 255", NonZeroU8::MIN..=NonZeroU8::MAX));
    DecisionSettings {
        always_compare_med: switch(fields, "always-compare-med", usual.always_compare_med),
        missing_med_worst: switch(fields, "missing-med-worst", usual.missing_med_worst),
        compare_router_id: switch(fields, "compare-router-id", usual.compare_router_id),
        ignore_as_path_length: switch(fields, "ignore-as-path-length", usual.ignore_as_path_length),
        multipath: multipath.unwrap_or(usual.multipath),
        multipath_relax: switch(fields, "multipath-relax", usual.multipath_relax),
    }
}

fn switch(fields: &mut Fields<'_>, key: &'static str, usual: bool) -> bool {
    fields.take(key).and_then(|item| item.boolean()).unwrap_or(usual)
}
