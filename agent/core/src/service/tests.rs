//! The vectors of service advertisement, by their number in the reference.

use super::*;
use ExternalTraffic::{Cluster, Local, Unset};
use ServiceKind::{ClusterIp, LoadBalancer, NodePort, Other};

fn nets(texts: &[&str]) -> Vec<IpNet> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn addresses(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// Cluster, external and load balancers' ranges.
fn ranges(cluster: &[&str], external: &[&str], load_balancer: &[&str]) -> ServiceRanges {
    ServiceRanges {
        cluster: nets(cluster),
        external: nets(external),
        load_balancer: nets(load_balancer),
        single_load_balancers: false,
    }
}

fn service(kind: ServiceKind, traffic: ExternalTraffic, cluster_ips: &[&str]) -> Service {
    let cluster_ips = addresses(cluster_ips);
    let versions = cluster_ips.iter().map(|address| IpVersion::of(*address)).collect();
    Service { kind, traffic, cluster_ips, versions, ..Service::default() }
}

fn slice(version: IpVersion, endpoints: &[(&str, bool)]) -> EndpointSlice {
    let endpoint = |(node, ready): &(&str, bool)| Endpoint { node: Some((*node).into()), ready: *ready };
    EndpointSlice { version: Some(version), endpoints: endpoints.iter().map(endpoint).collect() }
}

/// One IPv4 slice.
fn v4(endpoints: &[(&str, bool)]) -> Vec<EndpointSlice> {
    vec![slice(IpVersion::V4, endpoints)]
}

fn texts(prefixes: BTreeSet<IpNet>) -> Vec<String> {
    prefixes.iter().map(ToString::to_string).collect()
}

/// What n1 announces as a whole and singly.
fn announced(
    ranges: &ServiceRanges,
    service: &Service,
    slices: &[EndpointSlice],
) -> (Vec<String>, Vec<String>) {
    let announcer = Announcer { node: &"n1".into(), excluded: false, ranges };
    (texts(announcer.aggregates()), texts(announcer.addresses(service, slices)))
}

const CIP: &[&str] = &["10.96.0.0/12"];
const CIP6: &[&str] = &["10.96.0.0/12", "fd00:96::/112"];

#[test]
fn vectors_1_to_17() {
    let ready = || v4(&[("n1", true)]);
    let elsewhere = || v4(&[("n2", true)]);
    let cip = || ranges(CIP, &[], &[]);
    let lb = |range: &str| ranges(&[], &[], &[range]);
    let single = || ServiceRanges { single_load_balancers: true, ..lb("80.15.0.0/24") };
    let ingress = |service: Service, ips: &[&str]| Service { ingress: addresses(ips), ..service };
    let six = || ingress(service(LoadBalancer, Local, &["10.96.0.12"]), &["80.15.0.1", "90.15.0.1"]);
    let eight = || ingress(service(LoadBalancer, Cluster, &["10.96.0.13"]), &["80.15.0.7"]);
    let external = |ips: &[&str]| Service {
        external_ips: addresses(ips),
        ..service(NodePort, Cluster, &["10.96.0.14"])
    };
    type Vector<'a> = (&'a str, ServiceRanges, Service, Vec<EndpointSlice>, &'a [&'a str], &'a [&'a str]);
    let vectors: Vec<Vector<'_>> = vec![
        ("1", cip(), service(ClusterIp, Unset, &["10.96.0.10"]), ready(), CIP, &[]),
        ("2", cip(), service(LoadBalancer, Local, &["10.96.0.11"]), ready(), CIP, &["10.96.0.11/32"]),
        ("3", cip(), service(LoadBalancer, Local, &["10.96.0.11"]), elsewhere(), CIP, &[]),
        (
            "4",
            cip(),
            service(LoadBalancer, Local, &["10.96.0.11"]),
            v4(&[("n1", false), ("n2", true)]),
            CIP,
            &[],
        ),
        (
            "5",
            cip(),
            service(LoadBalancer, Local, &["10.96.0.11"]),
            vec![slice(IpVersion::V4, &[("n1", false)]), slice(IpVersion::V4, &[("n1", true)])],
            CIP,
            &["10.96.0.11/32"],
        ),
        (
            "6",
            ranges(CIP, &[], &["80.15.0.0/24"]),
            six(),
            ready(),
            &["10.96.0.0/12", "80.15.0.0/24"],
            &["10.96.0.12/32", "80.15.0.1/32"],
        ),
        ("7", lb("80.15.0.0/24"), six(), ready(), &["80.15.0.0/24"], &["80.15.0.1/32"]),
        ("8", lb("80.15.0.0/24"), eight(), elsewhere(), &["80.15.0.0/24"], &[]),
        ("9", single(), eight(), elsewhere(), &[], &["80.15.0.7/32"]),
        ("10", single(), eight(), v4(&[("n1", false), ("n2", false)]), &[], &[]),
        (
            "11",
            lb("80.15.0.9/32"),
            ingress(service(LoadBalancer, Cluster, &["10.96.0.15"]), &["80.15.0.9"]),
            v4(&[]),
            &[],
            &["80.15.0.9/32"],
        ),
        (
            "12",
            lb("80.15.0.9/32"),
            ingress(service(LoadBalancer, Local, &["10.96.0.15"]), &["80.15.0.9"]),
            elsewhere(),
            &[],
            &[],
        ),
        (
            "13",
            ranges(&[], &["45.12.0.0/16", "172.217.3.5/32"], &[]),
            external(&["45.12.70.5", "172.217.3.5"]),
            v4(&[]),
            &["45.12.0.0/16"],
            &["45.12.70.5/32", "172.217.3.5/32"],
        ),
        (
            "14",
            ranges(&[], &["45.12.0.0/16"], &[]),
            external(&["45.12.70.5"]),
            ready(),
            &["45.12.0.0/16"],
            &[],
        ),
        ("15 ExternalName", cip(), service(Other, Local, &["10.96.0.16"]), ready(), CIP, &[]),
        (
            "15 headless",
            cip(),
            Service { headless: true, ..service(ClusterIp, Local, &["10.96.0.16"]) },
            ready(),
            CIP,
            &[],
        ),
        ("16", ranges(CIP6, &[], &[]), service(LoadBalancer, Local, &["fd00:96::25"]), ready(), CIP6, &[]),
        (
            "17",
            ranges(CIP6, &[], &[]),
            service(LoadBalancer, Local, &["fd00:96::28"]),
            vec![slice(IpVersion::V6, &[("n1", true)])],
            CIP6,
            &["fd00:96::28/128"],
        ),
    ];
    for (number, ranges, service, slices, aggregates, singles) in vectors {
        let (whole, single) = announced(&ranges, &service, &slices);
        assert_eq!((&whole[..], &single[..]), (&owned(aggregates)[..], &owned(singles)[..]), "{number}");
    }
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn vector_18_an_address_stays_until_the_last_service_that_has_it_goes() {
    let ranges = ranges(CIP, &["172.217.3.5/32"], &[]);
    let announcer = Announcer { node: &"n1".into(), excluded: false, ranges: &ranges };
    let with =
        |ip| Service { external_ips: addresses(&["172.217.3.5"]), ..service(LoadBalancer, Local, &[ip]) };
    let of = |service: &Service| announcer.addresses(service, &v4(&[("n1", true)]));
    let (first, second) = (of(&with("10.96.0.1")), of(&with("10.96.0.2")));
    assert_eq!(texts(&first | &second), ["10.96.0.1/32", "10.96.0.2/32", "172.217.3.5/32"]);
    assert_eq!(texts(second), ["10.96.0.2/32", "172.217.3.5/32"]);
}

#[test]
fn vector_19_an_excluded_node_announces_nothing() {
    let ranges = ranges(CIP, &[], &[]);
    let announcer = Announcer { node: &"n1".into(), excluded: true, ranges: &ranges };
    let service = service(LoadBalancer, Local, &["10.96.0.11"]);
    assert_eq!(announcer.aggregates(), BTreeSet::new());
    assert_eq!(announcer.addresses(&service, &v4(&[("n1", true)])), BTreeSet::new());
}

#[test]
fn vector_20_without_ranges_there_is_nothing() {
    let service = service(LoadBalancer, Local, &["10.96.0.11"]);
    let nothing = (Vec::new(), Vec::new());
    assert_eq!(announced(&ServiceRanges::default(), &service, &v4(&[("n1", true)])), nothing);
}

#[test]
fn vector_21_external_addresses_follow_their_ranges() {
    let service = Service {
        external_ips: addresses(&["45.12.70.5", "172.217.3.5"]),
        ..service(LoadBalancer, Local, &["10.96.0.11"])
    };
    let singles =
        |external: &str| announced(&ranges(&[], &[external], &[]), &service, &v4(&[("n1", true)])).1;
    assert_eq!(singles("45.12.0.0/16"), ["45.12.70.5/32"]);
    assert_eq!(singles("172.217.3.5/32"), ["172.217.3.5/32"]);
}

#[test]
fn each_ip_version_needs_its_own_endpoint_unless_none_is_needed() {
    let dual = service(LoadBalancer, Local, &["10.96.0.11", "fd00:96::11"]);
    let (_, singles) = announced(&ranges(CIP6, &[], &[]), &dual, &v4(&[("n1", true)]));
    assert_eq!(singles, ["10.96.0.11/32"]);
    let alone = Service { ingress: addresses(&["80.15.0.9"]), traffic: Cluster, ..dual };
    let (_, singles) = announced(&ranges(CIP6, &[], &["80.15.0.9/32"]), &alone, &[]);
    assert_eq!(singles, ["10.96.0.11/32", "80.15.0.9/32", "fd00:96::11/128"]);
}

#[test]
fn host_names_are_no_addresses_and_a_node_without_name_is_not_this_one() {
    let service = service(LoadBalancer, Local, &["10.96.0.11"]);
    let ready = |version, node| EndpointSlice { version, endpoints: vec![Endpoint { node, ready: true }] };
    let slices = [ready(None, Some("n1".into())), ready(Some(IpVersion::V4), None)];
    assert_eq!(announced(&ranges(CIP, &[], &[]), &service, &slices).1, [""; 0]);
}
