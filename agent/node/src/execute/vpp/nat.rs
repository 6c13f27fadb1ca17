//! What VPP holds of source translation, as far as it says.

use agent_core::desired::SnatAddresses;
use vpp_client::wire::api::cnat::CnatGetSnatAddresses;
use vpp_client::{CallError, Client};

/// The addresses that sources become; none where source translation has not been set up, or is not known to this VPP.
pub(super) async fn addresses(client: &Client) -> Result<Option<SnatAddresses>, CallError> {
    if !client.knows::<CnatGetSnatAddresses>() {
        return Ok(None);
    }
    let reply = client.ask(&CnatGetSnatAddresses::default()).await?;
    // Some releases say that it has not been set up, others have addresses of zeros then.
    if reply.retval.ok().is_err() {
        return Ok(None);
    }
    let (ipv4, ipv6) = (reply.snat_ip4.addr(), reply.snat_ip6.addr());
    let addresses = SnatAddresses {
        ipv4: Some(ipv4).filter(|address| !address.is_unspecified()),
        ipv6: Some(ipv6).filter(|address| !address.is_unspecified()),
    };
    Ok(Some(addresses).filter(|addresses| *addresses != SnatAddresses::default()))
}
