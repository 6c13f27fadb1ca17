//! `GET /v1/explain`: the life of one destination. The speaker is asked, then the engine where there is one.

use agent_core::explain::Explained;
use bgp_net::Handle;
use bgp_wire::Nlri;
use hyper::{Response, StatusCode};
use tokio::sync::mpsc;

use super::answer::Life;
use super::http::{Body, failure, json};
use super::routes::decode;
use super::stopped;
use crate::engine::{Ask, ask_explain};

/// What the query of the URI asks for: `prefix`, and `family` where it does not follow from that.
fn question(query: &str) -> Result<Nlri, String> {
    let (mut prefix, mut family) = (None, None);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        match key {
            "prefix" => prefix = Some(decode(value)),
            "family" => family = Some(decode(value)).filter(|family| !family.is_empty()),
            _ => return Err(format!("unknown parameter \"{key}\": there are prefix and family")),
        }
    }
    let prefix = prefix.filter(|prefix| !prefix.is_empty()).ok_or("which prefix? prefix=10.0.0.0/24")?;
    // An address is the prefix of it alone.
    let host = prefix.parse::<std::net::IpAddr>().ok().map(|address| Nlri::from(ipnet::IpNet::from(address)));
    let nlri = match (host, family) {
        (Some(host), None) => host,
        (Some(host), Some(family)) => {
            Nlri::parse_as(family.parse().map_err(|error| format!("{error}"))?, &host.to_string())
                .map_err(|error| error.to_string())?
        }
        (None, None) => prefix.parse().map_err(|error: bgp_wire::NlriParseError| error.to_string())?,
        (None, Some(family)) => Nlri::parse_as(family.parse().map_err(|error| format!("{error}"))?, &prefix)
            .map_err(|error| error.to_string())?,
    };
    Ok(nlri)
}

/// Answers.
pub(super) async fn answer(
    speaker: &Handle,
    engine: Option<&mpsc::Sender<Ask>>,
    query: &str,
) -> Response<Body> {
    let asked = match question(query) {
        Ok(asked) => asked,
        Err(error) => return failure(StatusCode::BAD_REQUEST, error),
    };
    let explained = speaker.ask(move |speaker, now| (speaker.identity(), speaker.explain(now, asked))).await;
    let Ok((identity, explanation)) = explained else { return stopped() };
    let Some(explanation) = explanation else {
        return failure(StatusCode::NOT_FOUND, format!("no route to {asked}, nor to a prefix that holds it"));
    };
    let prefix = explanation.nlri.unicast();
    let from_agent: Option<(Explained, bool)> = match (engine, prefix) {
        (Some(engine), Some(prefix)) => match ask_explain(engine, prefix).await {
            Some(explained) => Some(explained),
            None => return stopped(),
        },
        _ => None,
    };
    let (explained, has_vpp) = from_agent.unzip();
    json(StatusCode::OK, &Life::new(identity, asked, &explanation, explained, has_vpp.unwrap_or(false)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions() {
        let prefix = |query| question(query).map(|nlri| nlri.to_string());
        assert_eq!(prefix("prefix=10.0.0.0/24").unwrap(), "10.0.0.0/24");
        assert_eq!(prefix("prefix=10.0.0.7").unwrap(), "10.0.0.7/32");
        assert_eq!(prefix("prefix=2001:db8::7&family=").unwrap(), "2001:db8::7/128");
        assert_eq!(prefix("prefix=65000:1:10.0.0.0/24&family=ipv4-vpn").unwrap(), "65000:1:10.0.0.0/24");
        for (wrong, words) in [
            ("", "which prefix? prefix=10.0.0.0/24"),
            ("prefix=10.0.0.1/24", "10.0.0.1/24 has host bits set, did you mean 10.0.0.0/24?"),
            ("prefix=10.0.0.1&family=ipv6-unicast", "10.0.0.1/32 is not of family ipv6-unicast"),
            ("prefx=1", "unknown parameter \"prefx\": there are prefix and family"),
        ] {
            assert_eq!(prefix(wrong), Err(words.to_owned()));
        }
    }
}
