//! `BGPConfiguration`: settings of the whole cluster (`default`) or of one node (`node.<name>`).

use std::time::Duration;

use ipnet::IpNet;

use super::value::{SecretKey, as_number, non_empty, prefix, secret_key};
use crate::yaml::{Item, Mistake};

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
    /// `serviceClusterIPs`, `serviceExternalIPs`, `serviceLoadBalancerIPs`.
    pub(crate) service_prefixes: Vec<IpNet>,
}

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
        for key in ["serviceLoadBalancerIPs", "serviceExternalIPs", "serviceClusterIPs"] {
            for block in fields.take(key).map(|item| item.list()).unwrap_or_default() {
                let Some(mut block) = block.fields() else { continue };
                config.service_prefixes.extend(block.take("cidr").and_then(|cidr| prefix(&cidr)));
                block.finish();
            }
        }
        if let Some(item) = fields.take("serviceLoadBalancerAggregation") {
            item.word(&["Enabled", "Disabled"]);
        }
        communities(&mut fields);
        if let Some(item) = fields.take("ignoredInterfaces") {
            for name in item.list() {
                non_empty(&name);
            }
        }
        fields.ignore(&[
            "localWorkloadPeeringIPV4",
            "localWorkloadPeeringIPV6",
            "programClusterRoutes",
            "ipv4NormalRoutePriority",
            "ipv6NormalRoutePriority",
        ]);
        fields.finish();
        Some(config)
    }
}

/// `communities` and `prefixAdvertisements`: their shape only, as nothing is tagged with them yet.
fn communities(fields: &mut crate::yaml::Fields<'_>) {
    for item in fields.take("communities").map(|item| item.list()).unwrap_or_default() {
        let Some(mut community) = item.fields() else { continue };
        community.need("name");
        if let Some(value) = community.need("value") {
            value.parse_with("a community such as 64512:100 or 64512:1:2", |text| {
                let limit = match text.matches(':').count() {
                    1 => u32::from(u16::MAX),
                    2 => u32::MAX,
                    _ => return None,
                };
                text.split(':').all(|part| part.parse::<u32>().is_ok_and(|part| part <= limit)).then_some(())
            });
        }
        community.finish();
    }
    for item in fields.take("prefixAdvertisements").map(|item| item.list()).unwrap_or_default() {
        let Some(mut advertisement) = item.fields() else { continue };
        if let Some(cidr) = advertisement.need("cidr") {
            prefix(&cidr);
        }
        if let Some(names) = advertisement.take("communities") {
            for name in names.list() {
                non_empty(&name);
            }
        }
        advertisement.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::super::object::tests::{one, problems};
    use super::super::{Object, ObjectName};
    use super::*;

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
  prefixAdvertisements: [{cidr: 10.0.0.0/8, communities: [c]}]
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
            service_prefixes: vec!["203.0.113.0/24".parse().unwrap(), "10.96.0.0/12".parse().unwrap()],
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
