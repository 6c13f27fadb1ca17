//! `peregrine speaker`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use crate::log::{LogFormat, LogLevel, LogSettings};

const EXAMPLE: &str = r#"The file, with everything that this release knows:

  asn: 65000                          # or 6.10; required
  router-id: 192.0.2.1                # required
  listen: ["192.0.2.1:179", "[2001:db8::1]:179"]
  cluster-id: 192.0.2.1               # of a route reflector; its router-id when left out
  enforce-first-as: true              # a neighbor may say otherwise
  require-policy: true                # external ones exchange nothing without policies (RFC 8212)
  # equal paths that are used at once; told to whoever embeds the speaker, and shown by `routes`.
  # Without relax their AS paths must be the same, with it of the same length
  multipath: 8
  multipath-relax: false
  always-compare-med: false           # true: between different neighboring ASes too
  missing-med-worst: false            # true: no MED is worse than any, rather than 0
  compare-router-id: true             # false: the oldest of equal external paths is best
  ignore-as-path-length: false
  # neighbors keep our routes while we restart, and we theirs; off when left out. Set
  # forwarding-preserved only where something goes on forwarding without us; each start counts as a
  # restart then. With a long-lived-stale-time (RFC 9494; one number, or { ipv4-unicast: 3600 } for
  # some families) routes are kept for that long after the restart time too, as a last resort; it is
  # also the longest that we keep a neighbor's so
  graceful-restart: { restart-time: 120, long-lived-stale-time: 3600, forwarding-preserved: false }
  api: /run/peregrine.sock            # for `peregrine peers --socket` and the like
  neighbors:
    - address: 192.0.2.2              # or prefix: 192.0.2.0/24, for whoever connects from there
      asn: 65010                      # or external, internal; required
      port: 179
      passive: false
      local-address: 192.0.2.1
      local-port: 1179                # any when left out
      device: eth0                    # the connection uses this interface, whatever routes say
      # presented instead of ours; a number alone means the same. With no-prepend: false it goes in
      # front of what an external neighbor tells, with replace-as: false ours stands behind it
      local-asn: { asn: 65100, no-prepend: true, replace-as: true }
      enforce-first-as: true          # its paths begin with its AS number; not a route server's
      allow-own-as: 0                 # how often our AS number may be in a path that comes in
      as-override: false              # true: its AS number becomes ours in what it is told
      remove-private-as: { remove: leading, replace: false }        # or all; ours in their place
      route-reflector-client: false   # true: routes are reflected for this internal neighbor
      families: [ipv4-unicast, ipv6-unicast]        # and ipv4- or ipv6-vpn, -srpolicy
      hold-time: 90                   # 0, or 3 and more
      keepalive: 30                   # a third of the hold time when left out
      connect-retry: 5
      delay-open: 10                  # seconds that our OPEN waits for the neighbor's; usually 0
      multihop: 64                    # TTL of an external session that is not one hop away
      ttl-security: 1                 # so many hops at most (RFC 5082), whatever multihop says
      md5-password-file: /etc/peregrine/peer.key    # TCP MD5 (RFC 2385); read again at SIGHUP
      limit: 100                      # with prefix: how many such neighbors there may be at once
      next-hop: default               # or self, keep
      # our address as the next hop of the family that the session itself is not of: without one,
      # routes of that family that lead through us are not announced (`peregrine peers` says so)
      next-hop-ipv4: 192.0.2.1
      next-hop-ipv6: 2001:db8::1
      extended-messages: true         # up to 65,535 octets (RFC 8654)
      extended-next-hop: false        # IPv6 next hops of IPv4 prefixes (RFC 8950)
      add-path: { receive: true, send: 4 }          # several paths of a prefix (RFC 7911)
      role: customer                  # ours: or provider, peer, rs, rs-client (RFC 9234)
      role-strict: false              # true: no session where the neighbor names no role
      # beyond the limit: warn, discard, or reset and stay away for so many seconds (for ever when
      # left out)
      max-prefixes: { ipv4-unicast: { limit: 1000000, action: reset, restart: 300 } }
      max-prefixes-out: { ipv4-unicast: 1000 }      # it is told of no more
      sr-policy-strict: false         # true: SR policies must say whom they are for
      import: [OTHER, POLICY, reject] # in order; or one of them, or accept or reject alone
      export: POLICY
      description: top of rack
  originate:
    - { prefix: 203.0.113.0/24, next-hop: self, communities: ["65000:1"], med: 10, local-pref: 100 }
    # of a VPN: its route distinguisher, the label by which the next hop knows the prefix, its route
    # targets
    - { prefix: 203.0.113.0/24, rd: 65000:100, label: 16, communities: [rt:65000:100] }
    - sr-policy:                      # a candidate path (RFC 9830)
        { color: 100, endpoint: 192.0.2.9, distinguisher: 0, preference: 100, priority: 128,
          name: path, policy-name: gold, explicit-null: both,         # ipv4, ipv6, both or none
          # or fc00::1, or { sid: 16100, specified-only: true, drop-upon-invalid: true }
          binding-sid: 16100,
          srv6-binding-sids: [{ sid: "fc00::2", behavior: End.B6.Encaps, structure: 32/16/16/0 }],
          segment-lists: [
            { weight: 2,
              segments: [16001, { label: 16002, traffic-class: 0, ttl: 255, flags: V }] },
            { weight: 1, segments: ["fc00::3", { sid: "fc00::4", behavior: End.DT4 }] }] }
      communities: ["rt:192.0.2.2:0"] # identifiers of the routers it is for, or no-advertise
  aggregate:                          # own routes that are there while one inside them is; with
    # summary-only: true what is inside is not announced
    - { prefix: 198.51.0.0/16, summary-only: true, communities: ["65000:1"] }
  sets:
    prefixes: { own: ["203.0.113.0/24 le 32"] }
    neighbors: { tor: [192.0.2.2] }
    communities: { mark: ["65000:1", "65000:*", "rt:65000:1"] }       # of any kind
    large-communities: { big: ["65000:1:*"] }
    ext-communities: { targets: ["rt:65000:*"] }
    as-paths: { bogus: ["_64512_", "^$"] }          # regular expressions; _ is between AS numbers
  policies:
    POLICY:
      statements:                     # the first one that matches decides, unless it says next
        - label: what this is for
          if:                         # all of these; sets by name, or members
            { prefixes: own, neighbors: tor, community: [mark, no-export], all-communities: mark,
              as-path: bogus, as-path-prefix: [65010, 65020], as-path-length: { min: 1, max: 9 },
              source: external, peer-type: external, family: ipv4-unicast,
              next-hop: 192.0.2.0/24, origin: igp, rd: 65000:1, local-pref: 100, med: { max: 5 },
              not: { community: "65000:9" }, any: [{ med: 1 }, { med: 5 }] }
          set:                        # med: also { add: -5 } or remove
            { local-pref: 200, med: 5, origin: igp, next-hop: self,
              prepend: { asn: 65000, count: 2 },
              communities: { replace: ["65000:3"], remove: mark, add: ["65000:5", "rt:65000:1"] },
              add-communities: ["65000:7"] }
          then: { call: OTHER }       # or accept, reject, next; OTHER may come back here
        - { set: { med: { add: 5 }, prepend: [65000, 65001] }, then: accept }
      default: reject                 # or accept, next: to the next policy, or back to who called
    OTHER: { statements: [], default: next }
  import: OTHER                       # before each neighbor's policies; or a list, but a neighbor's
                                      # plain reject stands, also that of require-policy
  export: [OTHER]

A mistake in a neighbor stops that neighbor only, or leaves it with its old settings when the file
is read again; `peregrine peers` lists it with the reason."#;

/// The BGP speaker alone, from a file of its own. Stays in the foreground.
///
/// SIGTERM and SIGINT stop it gracefully: neighbors keep our routes where graceful restart is agreed, other sessions
/// end with Cease. SIGHUP reads the file again and touches only what changed; a file that cannot be read
/// as a whole changes nothing, and a neighbor with a mistake keeps its old settings.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLE)]
pub(super) struct Arguments {
    /// The speaker's configuration as YAML.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// What is logged.
    #[arg(long, value_name = "LEVEL", default_value = "info", value_parser = level)]
    log_level: LogLevel,
    /// How it is logged.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    log_format: LogWords,
}

/// How the log is written.
#[derive(Copy, Clone, Debug, ValueEnum)]
enum LogWords {
    /// For people.
    Text,
    /// For programs.
    Json,
}

fn level(text: &str) -> Result<LogLevel, String> {
    LogLevel::parse(text).ok_or_else(|| "there are error, warn, info, debug and trace".to_owned())
}

pub(super) fn run(arguments: Arguments) -> ExitCode {
    let format = match arguments.log_format {
        LogWords::Text => LogFormat::Text,
        LogWords::Json => LogFormat::Json,
    };
    crate::app::speaker::run(arguments.config, LogSettings { level: arguments.log_level, format })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keys that a source file asks for by name.
    fn keys(source: &'static str) -> impl Iterator<Item = &'static str> {
        let calls = ["take(\"", "need(\"", "switch(fields, \""];
        calls
            .into_iter()
            .flat_map(move |call| source.split(call).skip(1))
            .filter_map(|rest| rest.split('"').next())
    }

    #[test]
    fn the_help_has_every_key() {
        let sources = [
            include_str!("../speaker_file.rs"),
            include_str!("../speaker_file/decision.rs"),
            include_str!("../speaker_file/neighbor.rs"),
            include_str!("../speaker_file/policy.rs"),
            include_str!("../speaker_file/sr_policy.rs"),
        ];
        let known: Vec<_> = sources.into_iter().flat_map(keys).collect();
        assert!(known.len() > 40, "{known:?}");
        let missing: Vec<_> = known.into_iter().filter(|key| !EXAMPLE.contains(&format!("{key}:"))).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn the_help_can_be_copied() {
        // A line that a terminal breaks is no YAML any more.
        let long: Vec<_> = EXAMPLE.lines().filter(|line| line.chars().count() > 100).collect();
        assert!(long.is_empty(), "{long:?}");
        let file: String = EXAMPLE
            .lines()
            .skip(2)
            .take_while(|line| !line.starts_with('A'))
            .fold(String::new(), |file, line| file + line.strip_prefix("  ").unwrap_or(line) + "\n");
        let file = crate::speaker_file::SpeakerFile::parse(&file).unwrap();
        // It shows what goes with an address beside what goes with a prefix, and a key file that isn't there.
        let flaws: Vec<_> =
            file.refused.iter().flat_map(|refused| &refused.flaws).map(ToString::to_string).collect();
        assert_eq!(flaws.len(), 2, "{flaws:?}");
        assert!(
            flaws[0].contains("md5-password-file") && flaws[1].contains("limit and address"),
            "{flaws:?}"
        );
    }
}
