//! `feature` and what switches features by a message of its own: `gso`, `cnat`.

use vpp_wire::Message;
use vpp_wire::api::feature::{FeatureIsEnabled, FeatureIsEnabledReply};
use vpp_wire::api::gso::{FeatureGsoEnableDisable, FeatureGsoEnableDisableReply};
use vpp_wire::name::MsgName;

use super::field::{bytes_at, text, u8_at, u32_at};
use super::retval::{INVALID_SW_IF_INDEX, INVALID_VALUE, OK};
use super::row::{Row, foreign, row};
use crate::context::Cx;
use crate::state::interface::{FEATURES, Interface};

pub(super) fn rows() -> Vec<Row> {
    vec![
        row::<FeatureIsEnabled, FeatureIsEnabledReply>(feature_is_enabled),
        row::<FeatureGsoEnableDisable, FeatureGsoEnableDisableReply>(feature_gso_enable_disable),
        foreign(
            MsgName::new("feature_enable_disable", 0x7531_c862),
            MsgName::new("feature_enable_disable_reply", 0xe8d4_e804),
            10,
            feature_enable_disable,
        ),
        foreign(
            MsgName::new("feature_cnat_enable_disable", 0x5501_adee),
            MsgName::new("feature_cnat_enable_disable_reply", 0xe8d4_e804),
            10,
            feature_cnat_enable_disable,
        ),
    ]
}

/// Where a feature stands in [`FEATURES`].
fn known(arc: &[u8], feature: &[u8]) -> Option<usize> {
    FEATURES.iter().position(|(a, f)| a.as_bytes() == arc && f.as_bytes() == feature)
}

fn feature_is_enabled(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let request = FeatureIsEnabled::parse(payload).ok()?;
    let feature = known(request.arc_name.text(), request.feature_name.text());
    let interface = cx.state.interfaces.get(request.sw_if_index.value());
    let (retval, on) = match (interface, feature) {
        (None, _) => (INVALID_SW_IF_INDEX, false),
        (_, None) => (INVALID_VALUE, false),
        (Some(interface), Some(feature)) => (OK, interface.feature_is_on(feature)),
    };
    cx.answer::<FeatureIsEnabledReply>(|answer| {
        answer.retval = vpp_wire::Retval::new(retval);
        answer.is_enabled = on.into();
    });
    Some(())
}

/// Counts: what was enabled twice is on after being disabled once.
fn feature_enable_disable(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let sw_if_index = u32_at(payload, 10)?;
    let enable = u8_at(payload, 14)? != 0;
    let (arc, feature) = (text(bytes_at::<64>(payload, 15)?), text(bytes_at::<64>(payload, 79)?));
    let retval = match (cx.state.interfaces.get_mut(sw_if_index), known(arc, feature)) {
        (None, _) => INVALID_SW_IF_INDEX,
        (_, None) => INVALID_VALUE,
        (Some(interface), Some(feature)) => {
            interface.count_feature(feature, enable);
            OK
        }
    };
    cx.retval(retval);
    Some(())
}

fn feature_gso_enable_disable(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let request = FeatureGsoEnableDisable::parse(payload).ok()?;
    let on = request.enable_disable.is_true();
    switch(cx, request.sw_if_index.value(), |interface| interface.gso = on)
}

fn feature_cnat_enable_disable(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let on = u8_at(payload, 14)? != 0;
    switch(cx, u32_at(payload, 10)?, |interface| interface.cnat = on)
}

fn switch(cx: &mut Cx<'_>, sw_if_index: u32, change: impl FnOnce(&mut Interface)) -> Option<()> {
    let retval = match cx.state.interfaces.get_mut(sw_if_index) {
        Some(interface) => {
            change(interface);
            OK
        }
        None => INVALID_SW_IF_INDEX,
    };
    cx.retval(retval);
    Some(())
}
