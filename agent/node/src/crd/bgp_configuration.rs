//! `BGPConfiguration`: settings of the whole cluster (`default`) or of one node (`node.<name>`).

use std::collections::BTreeMap;
use std::time::Duration;

use agent_core::model::{AnyCommunity, RoutePriority};
use ipnet::IpNet;

use super::value::{
    SecretKey, as_number, community, non_empty, parse_community, prefix, route_priority, secret_key,
};
use crate::yaml::{Fields, Item, Mistake};

/// The spec of a BGPConfiguration. `None` is "unset", whose meaning depends on the field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BgpConfiguration {
    /// `logSeverityScreen`.
    pub(crate) log_severity: Option<String>,
    /// `nodeToNodeMeshEnabled`; unset means enabled.
    pub(crate) mesh: Option<bool>,
    /// `asNumber`, 1 to 4294967295.
    pub(crate) as_number: Option<u32>,
    /// `listenPort`.
    pub(crate) listen_port: Option<u16>,
    /// `nodeMeshPassword`.
    pub(crate) mesh_password: Option<SecretKey>,
    /// `nodeMeshMaxRestartTime`.
    pub(crate) mesh_max_restart_time: Option<Duration>,
    /// `bindMode: NodeIP`: listen on the node's BGP addresses only.
    pub(crate) bind_node_ip: bool,
    /// `serviceClusterIPs`.
    pub(crate) service_cluster_ips: Vec<IpNet>,
    /// `serviceExternalIPs`.
    pub(crate) service_external_ips: Vec<IpNet>,
    /// `serviceLoadBalancerIPs`.
    pub(crate) service_load_balancer_ips: Vec<IpNet>,
    /// `serviceLoadBalancerAggregation: Disabled`.
    pub(crate) single_load_balancers: bool,
    /// `prefixAdvertisements`, the names of `communities` resolved; unset where the field is absent.
    pub(crate) prefix_advertisements: Option<Vec<(IpNet, Vec<AnyCommunity>)>>,
    /// `programClusterRoutes`, by its place in [`PROGRAM`].
    pub(crate) program_cluster_routes: Option<usize>,
    /// `ipv4NormalRoutePriority`.
    pub(crate) ipv4_normal_priority: Option<RoutePriority>,
    /// `ipv6NormalRoutePriority`.
    pub(crate) ipv6_normal_priority: Option<RoutePriority>,
}

/// The words of `programClusterRoutes`. Another one counts as the last, with a warning.
pub(crate) const PROGRAM: &[&str] = &["Enabled", "Disabled", "EnabledIPIPOnly", "EnabledNoEncapOnly"];

const LOG_LEVELS: &[&str] = &["Trace", "Debug", "Info", "Warning", "Error", "Fatal"];

impl BgpConfiguration {
    /// Read the `spec`. Mistakes go to the flaws of the item.
    pub(crate) fn decode(spec: &Item<'_>) -> Option<Self> {
        let mut fields = spec.fields()?;
        let mut config = Self::default();
        if let Some(item) = fields.take("logSeverityScreen") {
            config.log_severity = item.text().filter(|text| !text.is_empty()).and_then(|text| {
                let level = LOG_LEVELS.iter().find(|level| level.eq_ignore_ascii_case(text));
                if level.is_none() {
                    item.flaw(Mistake::Word { wanted: LOG_LEVELS, found: text.to_owned() });
                }
                level.map(|level| (*level).to_owned())
            });
        }
        config.mesh = fields.take("nodeToNodeMeshEnabled").and_then(|item| item.boolean());
        config.as_number = fields.take("asNumber").and_then(|item| as_number(&item)).filter(|asn| *asn != 0);
        config.listen_port =
            fields.take("listenPort").and_then(|item| item.number("a port, 1 to 65535", 1..=u16::MAX));
        config.mesh_password = fields.take("nodeMeshPassword").and_then(|item| secret_key(&item));
        config.mesh_max_restart_time = fields.take("nodeMeshMaxRestartTime").and_then(|item| item.duration());
        if config.mesh == Some(false)
            && (config.mesh_password.is_some() || config.mesh_max_restart_time.is_some())
        {
            fields.flaw(Mistake::Conflict {
                rule: "nodeMeshPassword and nodeMeshMaxRestartTime need nodeToNodeMeshEnabled",
            });
        }
        config.bind_node_ip =
            fields.take("bindMode").and_then(|item| item.word(&["None", "NodeIP"])) == Some(1);
        let mut ranges = |key| {
            let mut ranges = Vec::new();
            for block in fields.take(key).map(|item| item.list()).unwrap_or_default() {
                let Some(mut block) = block.fields() else { continue };
                ranges.extend(block.take("cidr").and_then(|cidr| prefix(&cidr)));
                block.finish();
            }
            ranges
        };
        config.service_load_balancer_ips = ranges("serviceLoadBalancerIPs");
        config.service_external_ips = ranges("serviceExternalIPs");
        config.service_cluster_ips = ranges("serviceClusterIPs");
        let aggregation = fields.take("serviceLoadBalancerAggregation");
        config.single_load_balancers =
            aggregation.and_then(|item| item.word(&["Enabled", "Disabled"])) == Some(1);
        config.prefix_advertisements = prefix_advertisements(&mut fields);
        config.program_cluster_routes = fields.take("programClusterRoutes").and_then(|item| {
            let place = PROGRAM.iter().position(|word| item.text() == Some(*word));
            if place.is_none() {
                item.flaw(Mistake::Doubtful {
                    effect: "is no word known here; it counts as EnabledNoEncapOnly",
                });
            }
            place
        });
        let mut priority = |key| fields.take(key).and_then(|item| route_priority(&item));
        config.ipv4_normal_priority = priority("ipv4NormalRoutePriority");
        config.ipv6_normal_priority = priority("ipv6NormalRoutePriority");
        if let Some(item) = fields.take("ignoredInterfaces") {
            for name in item.list() {
                non_empty(&name);
            }
        }
        fields.ignore(&["localWorkloadPeeringIPV4", "localWorkloadPeeringIPV6"]);
        fields.finish();
        Some(config)
    }
}

/// `prefixAdvertisements`, with the names of `communities` resolved. A name that is not there adds nothing.
fn prefix_advertisements(fields: &mut Fields<'_>) -> Option<Vec<(IpNet, Vec<AnyCommunity>)>> {
    let mut names = BTreeMap::new();
    for item in fields.take("communities").map(|item| item.list()).unwrap_or_default() {
        let Some(mut entry) = item.fields() else { continue };
        let name = entry.need("name").and_then(|name| non_empty(&name));
        let value = entry.need("value").and_then(|value| community(&value));
        entry.finish();
        if let (Some(name), Some(value)) = (name, value) {
            names.entry(name).or_insert(value);
        }
    }
    let mut advertisements = Vec::new();
    for item in fields.take("prefixAdvertisements")?.list() {
        let Some(mut entry) = item.fields() else { continue };
        // Without one it says nothing, and nothing forbids that.
        let cidr = entry.take("cidr").and_then(|cidr| prefix(&cidr));
        let mut communities = Vec::new();
        for value in entry.take("communities").map(|item| item.list()).unwrap_or_default() {
            let Some(text) = value.text() else { continue };
            match names.get(text).copied().or_else(|| parse_community(text)) {
                Some(community) => communities.push(community),
                None => value.flaw(Mistake::Doubtful {
                    effect: "is neither a community nor a name in spec.communities, so it adds nothing",
                }),
            }
        }
        entry.finish();
        advertisements.extend(cidr.map(|cidr| (cidr, communities)));
    }
    Some(advertisements)
}

#[cfg(test)]
mod tests {
    use super::super::object::tests::{one, problems};
    use super::super::{Object, ObjectName};
    use super::*;
    use bgp_core::{Community, LargeCommunity};

    #[test]
    fn every_field_is_read_or_known() {
        let text = "\
apiVersion: crd.projectcalico.org/v1
kind: BGPConfiguration
metadata: {name: default}
spec:
  logSeverityScreen: info
  nodeToNodeMeshEnabled: true
  asNumber: 64512
  listenPort: 1790
  nodeMeshPassword: {secretKeyRef: {name: bgp, key: mesh}}
  nodeMeshMaxRestartTime: 2m0s
  bindMode: NodeIP
  serviceClusterIPs: [{cidr: 10.96.0.0/12}]
  serviceExternalIPs: [{cidr: 203.0.113.0/24}, {}]
  serviceLoadBalancerIPs: []
  serviceLoadBalancerAggregation: Disabled
  communities: [{name: c, value: \"64512:1\"}]
  prefixAdvertisements: [{cidr: 10.0.0.0/8, communities: [c, \"1:2:3\"]}, {communities: [c]}]
  ignoredInterfaces: [\"docker*\"]
  localWorkloadPeeringIPV4: 169.254.1.1
  programClusterRoutes: Enabled
  ipv4NormalRoutePriority: 1024
";
        let (name, object) = one(text);
        assert_eq!(name, ObjectName::cluster("default"));
        let Object::BgpConfiguration(config) = object else { panic!("{object:?}") };
        let expected = BgpConfiguration {
            log_severity: Some("Info".into()),
            mesh: Some(true),
            as_number: Some(64512),
            listen_port: Some(1790),
            mesh_password: Some(SecretKey { name: "bgp".into(), key: "mesh".into() }),
            mesh_max_restart_time: Some(Duration::from_secs(120)),
            bind_node_ip: true,
            service_cluster_ips: vec!["10.96.0.0/12".parse().unwrap()],
            service_external_ips: vec!["203.0.113.0/24".parse().unwrap()],
            service_load_balancer_ips: Vec::new(),
            single_load_balancers: true,
            prefix_advertisements: Some(vec![(
                "10.0.0.0/8".parse().unwrap(),
                vec![
                    AnyCommunity::Standard(Community::new(64512, 1)),
                    AnyCommunity::Large(LargeCommunity::new(1, 2, 3)),
                ],
            )]),
            program_cluster_routes: Some(0),
            ipv4_normal_priority: RoutePriority::new(1024),
            ipv6_normal_priority: None,
        };
        assert_eq!(config, expected);
    }

    #[test]
    fn mistakes() {
        let head =
            "apiVersion: projectcalico.org/v3\nkind: BGPConfiguration\nmetadata: {name: default}\nspec:\n";
        let cases = [
            ("  asNumbr: 5\n", "line 5: spec.asNumbr: unknown field; did you mean \"asNumber\"?"),
            ("  listenPort: 0\n", "line 5: spec.listenPort: must be a port, 1 to 65535, not \"0\""),
            ("  bindMode: all\n", "line 5: spec.bindMode: must be None or NodeIP, not \"all\""),
            (
                "  communities: [{name: a, value: \"70000:1\"}]\n",
                "line 5: spec.communities[0].value: must be a community such as 64512:100 or 64512:1:2, not \"70000:1\"",
            ),
            (
                "  prefixAdvertisements: [{cidr: 10.0.0.0/8, communities: [who]}]\n",
                "line 5: spec.prefixAdvertisements[0].communities[0]: is neither a community nor a name in spec.communities, so it adds nothing",
            ),
            (
                "  ipv4NormalRoutePriority: 0\n",
                "line 5: spec.ipv4NormalRoutePriority: must be a priority, 1 to 2147483646, not \"0\"",
            ),
            (
                "  programClusterRoutes: Perhaps\n",
                "line 5: spec.programClusterRoutes: is no word known here; it counts as EnabledNoEncapOnly",
            ),
            (
                "  nodeToNodeMeshEnabled: false\n  nodeMeshMaxRestartTime: 5s\n",
                "line 5: spec: nodeMeshPassword and nodeMeshMaxRestartTime need nodeToNodeMeshEnabled",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(problems(&format!("{head}{text}")), [expected]);
        }
        let other =
            "apiVersion: projectcalico.org/v3\nkind: BGPConfiguration\nmetadata: {name: mine}\nspec: {}\n";
        assert_eq!(
            problems(other),
            [
                "line 1: metadata.name: a BGPConfiguration is read only under the names \"default\" and \"node.<node name>\""
            ]
        );
    }
}
