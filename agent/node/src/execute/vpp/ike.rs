//! IKEv2: profiles, beginnings, workers that encrypt; and what VPP holds of it.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use agent_core::event::{DumpedProfile, SwIfIndex, VppReply};
use agent_core::model::Psk;
use agent_core::plan::{
    IkeAction, IkeRequest, Retval as NamedRetval, VppFailure, profile_ends, profile_name,
};
use vpp_client::wire::api::crypto_sw_scheduler::CryptoSwSchedulerSetWorker;
use vpp_client::wire::api::ikev2::{
    AUTH_SHARED_KEY, AddressIdentity, ID_IPV4, Ikev2Auth, Ikev2EspTransforms, Ikev2Id, Ikev2IkeTransforms,
    Ikev2IkeTransforms2602, Ikev2InitiateSaInit, Ikev2ProfileAddDel, Ikev2ProfileDetails,
    Ikev2ProfileDetails2602, Ikev2ProfileDump, Ikev2ProfileDump2602, Ikev2ProfileSetTs, Ikev2Responder,
    Ikev2SetEspTransforms, Ikev2SetIkeTransforms, Ikev2SetIkeTransforms2602, Ikev2SetResponder,
    Ikev2SetTunnelInterface, Ikev2Ts, ProfileName, SharedKey,
};
use vpp_client::wire::api::interface::SwInterfaceSetFlags;
use vpp_client::wire::api::ipsec::IpsecSetAsyncMode;
use vpp_client::wire::api::vlib::{ShowThreads, ShowThreadsReply};
use vpp_client::wire::types::{SecretOctet, SwIfIndex as WireInterface};
use vpp_client::wire::{Refused, VppError};
use vpp_client::{CallError, Client, FromReply};

use super::tasks::{Failed, Outcome};

/// Carry an action out.
pub(super) async fn carry_out(client: Client, action: IkeAction) -> Outcome {
    match action {
        IkeAction::PutProfile(request) => put_profile(&client, &request).await?,
        IkeAction::DeleteProfile { ends } => {
            match client.call(&Ikev2ProfileAddDel::new(name(&profile_name(&ends))?, false)).await {
                // VPP says no more than that it did not work, which it does only where there is none.
                Err(CallError::Retval(VppError::UNSPECIFIED)) => return Err(VppFailure::Absent.into()),
                ended => drop(ended?),
            }
        }
        IkeAction::Initiate { profile, renew } => {
            if renew {
                put_profile(&client, &profile).await?;
            }
            client.call(&Ikev2InitiateSaInit::new(name(&profile.name())?)).await?;
        }
        IkeAction::AsyncCrypto { threads } => encrypt_apart(&client, threads).await?,
    }
    Ok(VppReply::Done)
}

/// Makes a profile in place of any of its name.
async fn put_profile(client: &Client, request: &IkeRequest) -> Result<(), Failed> {
    let IkeRequest { local, remote, index, psk, begins } = request;
    let (name, index) = (name(&request.name())?, WireInterface::new(index.0));
    // Nothing is to leave in the clear meanwhile: VPP sets the tunnel up when there is an association.
    client.call(&SwInterfaceSetFlags::new(index, false)).await?;
    match client.call(&Ikev2ProfileAddDel::new(name, false)).await {
        // There was none.
        Ok(_) | Err(CallError::Retval(_)) => {}
        Err(error) => return Err(error.into()),
    }
    client.call(&Ikev2ProfileAddDel::new(name, true)).await?;
    client.call(&Ikev2SetTunnelInterface::new(name, index)).await?;
    client.call(&SharedKey::new(name, psk.expose()).map_err(refused)?).await?;
    for (is_local, address) in [(true, *local), (false, *remote)] {
        client.call(&AddressIdentity::new(name, is_local, address)).await?;
        client.call(&Ikev2ProfileSetTs::all_ipv4(name, is_local)).await?;
    }
    if let Some(uplink) = begins {
        let uplink = WireInterface::new(uplink.0);
        client.call(&Ikev2SetResponder::new(name, uplink, *remote).map_err(refused)?).await?;
        if client.knows::<Ikev2SetIkeTransforms>() {
            client.call(&Ikev2SetIkeTransforms::agreed(name)).await?;
        } else {
            client.call(&Ikev2SetIkeTransforms2602::agreed(name)).await?;
        }
        client.call(&Ikev2SetEspTransforms::agreed(name)).await?;
    }
    Ok(())
}

/// How many workers there are besides the main thread.
#[derive(Copy, Clone, Debug)]
struct Workers(u32);

impl FromReply<ShowThreadsReply> for Workers {
    fn from_reply(reply: &ShowThreadsReply) -> Self {
        Self(u32::try_from(reply.thread_data.len()).unwrap_or(u32::MAX).saturating_sub(1))
    }
}

/// The last workers encrypt for the others, which don't.
async fn encrypt_apart(client: &Client, threads: u32) -> Result<(), Failed> {
    client.call(&IpsecSetAsyncMode::new(true)).await?;
    let pipeline = client.pipeline::<(), Workers>(1);
    let mut answers = Vec::new();
    if pipeline.submit(&ShowThreads::default(), ()).is_err() {
        return Err(VppFailure::Unanswered.into());
    }
    pipeline.completions(&mut answers).await;
    let Some(answer) = answers.pop() else { return Err(VppFailure::Unanswered.into()) };
    let Workers(workers) = answer.outcome?;
    if threads >= workers {
        tracing::warn!(
            threads,
            workers,
            "ipsec.async-crypto-threads leaves no worker of vpp to forward: all of them do both"
        );
        return Ok(());
    }
    for worker in 0..workers - threads {
        client.call(&CryptoSwSchedulerSetWorker::new(worker, false)).await?;
    }
    Ok(())
}

fn name(name: &str) -> Result<ProfileName, Failed> {
    vpp_client::wire::api::ikev2::profile_name(name).map_err(refused)
}

fn refused(reason: Refused) -> Failed {
    VppFailure::Rejected(NamedRetval { value: 0, name: Arc::from(reason.to_string()) }).into()
}

/// Reads all profiles; none where this VPP has no IKEv2.
pub(super) async fn profiles(client: &Client) -> Result<Vec<DumpedProfile>, CallError> {
    if client.knows::<Ikev2ProfileDetails>() {
        let read = |all: &mut Vec<DumpedProfile>, details: &Ikev2ProfileDetails| {
            let profile = &details.profile;
            let agreed = profile.ike_ts == Ikev2IkeTransforms::AGREED;
            all.push(dumped(&Shown {
                name: &profile.name,
                ids: [&profile.loc_id, &profile.rem_id],
                selectors: [&profile.loc_ts, &profile.rem_ts],
                responder: &profile.responder,
                agreed: agreed && profile.esp_ts == Ikev2EspTransforms::AGREED,
                tunnel: profile.tun_itf.get(),
                auth: &profile.auth,
            }));
        };
        return client.dump(&Ikev2ProfileDump::default(), Vec::new(), read).await;
    }
    if client.knows::<Ikev2ProfileDetails2602>() {
        let read = |all: &mut Vec<DumpedProfile>, details: &Ikev2ProfileDetails2602| {
            let profile = &details.profile;
            let agreed = profile.ike_ts == Ikev2IkeTransforms2602::AGREED;
            all.push(dumped(&Shown {
                name: &profile.name,
                ids: [&profile.loc_id, &profile.rem_id],
                selectors: [&profile.loc_ts, &profile.rem_ts],
                responder: &profile.responder,
                agreed: agreed && profile.esp_ts == Ikev2EspTransforms::AGREED,
                tunnel: profile.tun_itf.get(),
                auth: &profile.auth,
            }));
        };
        return client.dump(&Ikev2ProfileDump2602::default(), Vec::new(), read).await;
    }
    Ok(Vec::new())
}

/// What all releases show of a profile.
struct Shown<'a> {
    name: &'a ProfileName,
    ids: [&'a Ikev2Id; 2],
    selectors: [&'a Ikev2Ts; 2],
    responder: &'a Ikev2Responder,
    agreed: bool,
    tunnel: u32,
    auth: &'a Ikev2Auth,
}

fn dumped(shown: &Shown<'_>) -> DumpedProfile {
    let name: Arc<str> = Arc::from(&*shown.name.to_str());
    let begins = Some(shown.responder.sw_if_index).filter(|index| *index != WireInterface::NONE);
    let ends = profile_ends(&name);
    let address = |address: IpAddr| match address {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    };
    let whole = ends.is_some_and(|ends| {
        let addresses = [address(ends.local), address(ends.remote)];
        let known = shown.ids.iter().zip(addresses).all(|(id, address)| is_address(id, address));
        let all = [true, false];
        let selected = shown.selectors.iter().zip(all).all(|(ts, local)| **ts == Ikev2Ts::all_ipv4(local));
        let to = begins.is_none() || (shown.agreed && shown.responder.addr.ip() == Some(ends.remote));
        known && selected && to
    });
    let by_key = shown.auth.method == AUTH_SHARED_KEY && shown.auth.hex == 0;
    DumpedProfile {
        name,
        index: SwIfIndex(shown.tunnel),
        psk: Psk::new(SecretOctet::reveal(&shown.auth.data).to_vec()).filter(|_| by_key),
        begins: begins.map(|index| SwIfIndex(index.value())),
        whole,
    }
}

fn is_address(id: &Ikev2Id, address: Option<Ipv4Addr>) -> bool {
    address.is_some_and(|address| {
        id.r#type == ID_IPV4 && id.data_len == 4 && id.data.starts_with(&address.octets())
    })
}
