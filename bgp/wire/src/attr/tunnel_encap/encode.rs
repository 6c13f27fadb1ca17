//! Writing a candidate path.

use super::{
    SR_POLICY,
    segment::{self, EndpointBehavior, Segment, SegmentFlags, SegmentList},
    sr_policy::{
        B, BindingSid, CandidatePath, CandidatePathError, I, S, Sid, Srv6BindingSid, UnknownSubTlv, kind,
    },
};

impl CandidatePath {
    /// The value of a Tunnel Encapsulation attribute that holds this path, for [`super::super::Builder::tunnel_encap`].
    ///
    /// Binding SID, SRv6 binding SIDs, segment lists, explicit null, the policy's name, unknown ones, the candidate path's
    /// name, preference, priority. Preference and weights are always said, for GoBGP 3: it reads three octets beyond a
    /// candidate path's name, and ends when that is the last of a message; it ends when its routes are listed and there is a
    /// segment list without weight, or a binding SID sub-TLV without a SID, so that one is left out, with its flags.
    ///
    /// # Errors
    /// What the fields may not say; see [`CandidatePathError`].
    pub fn encode(&self) -> Result<Vec<u8>, CandidatePathError> {
        let mut out = vec![0; 4];
        if let Some(BindingSid { specified_only, drop_upon_invalid, sid: Some(sid) }) = self.binding_sid {
            let head = [flags(specified_only, drop_upon_invalid), 0];
            match sid {
                Sid::Label(label @ 16..0x10_0000) => {
                    put(&mut out, kind::BINDING_SID, &[&head, &(label << 12).to_be_bytes()])?;
                }
                Sid::Label(label) => return Err(CandidatePathError::Label(label)),
                Sid::Srv6(sid) => put(&mut out, kind::BINDING_SID, &[&head, &sid.octets()])?,
            }
        }
        for Srv6BindingSid { specified_only, drop_upon_invalid, sid, behavior } in &self.srv6_binding_sids {
            let there = if behavior.is_some() { B } else { 0 };
            let head = [flags(*specified_only, *drop_upon_invalid) | there, 0];
            let (octets, count) = octets_of(*behavior)?;
            let behavior = octets.get(..count).unwrap_or_default();
            put(&mut out, kind::SRV6_BINDING_SID, &[&head, &sid.octets(), behavior])?;
        }
        for list in &self.segment_lists {
            put(&mut out, kind::SEGMENT_LIST, &[&list.encode()?])?;
        }
        match self.explicit_null {
            Some(policy @ 1..=4) => put(&mut out, kind::ENLP, &[&[0, 0, policy]])?,
            Some(policy) => return Err(CandidatePathError::ExplicitNull(policy)),
            None => {}
        }
        put_name(&mut out, kind::POLICY_NAME, self.policy_name.as_deref())?;
        for UnknownSubTlv { kind, value } in &self.unknown {
            put(&mut out, *kind, &[value])?;
        }
        put_name(&mut out, kind::CANDIDATE_PATH_NAME, self.name.as_deref())?;
        put(&mut out, kind::PREFERENCE, &[&[0; 2], &self.preference.to_be_bytes()])?;
        if let Some(priority) = self.priority {
            put(&mut out, kind::PRIORITY, &[&[priority, 0]])?;
        }
        let length = u16::try_from(out.len() - 4).map_err(|_| CandidatePathError::TooLong)?;
        out[..2].copy_from_slice(&SR_POLICY.to_be_bytes());
        out[2..4].copy_from_slice(&length.to_be_bytes());
        Ok(out)
    }
}

impl SegmentList {
    fn encode(&self) -> Result<Vec<u8>, CandidatePathError> {
        let mut out = vec![0];
        put(&mut out, segment::kind::WEIGHT, &[&[0; 2], &self.weight.to_be_bytes()])?;
        for segment in &self.segments {
            match segment {
                Segment::Mpls { flags, label, traffic_class, ttl } => {
                    if *label >= 0x10_0000 {
                        return Err(CandidatePathError::Label(*label));
                    }
                    if *traffic_class > 7 {
                        return Err(CandidatePathError::TrafficClass(*traffic_class));
                    }
                    let entry = label << 12 | u32::from(*traffic_class) << 9 | u32::from(*ttl);
                    let head = [flags.0 & SegmentFlags::DEFINED.0, 0];
                    put(&mut out, segment::kind::SEGMENT_TYPE_A, &[&head, &entry.to_be_bytes()])?;
                }
                Segment::Srv6 { flags, sid, behavior } => {
                    let head = [flags.0 & SegmentFlags::DEFINED.0, 0];
                    let (octets, count) = octets_of(*behavior)?;
                    let behavior = octets.get(..count).unwrap_or_default();
                    put(&mut out, segment::kind::SEGMENT_TYPE_B, &[&head, &sid.octets(), behavior])?;
                }
                Segment::Unknown(UnknownSubTlv { kind, value }) => put(&mut out, *kind, &[value])?,
            }
        }
        Ok(out)
    }
}

fn put_name(out: &mut Vec<u8>, kind: u8, name: Option<&str>) -> Result<(), CandidatePathError> {
    let Some(name) = name else { return Ok(()) };
    let printable = name.bytes().all(|octet| octet == b' ' || octet.is_ascii_graphic());
    if !printable || !(1..=255).contains(&name.len()) {
        return Err(CandidatePathError::Name);
    }
    put(out, kind, &[&[0], name.as_bytes()])
}

fn flags(specified_only: bool, drop_upon_invalid: bool) -> u8 {
    (if specified_only { S } else { 0 }) | if drop_upon_invalid { I } else { 0 }
}

/// Behaviour and structure, and how many octets they take: eight, or none.
fn octets_of(behavior: Option<EndpointBehavior>) -> Result<([u8; 8], usize), CandidatePathError> {
    let Some(behavior) = behavior else { return Ok(([0; 8], 0)) };
    if behavior.bits() > 128 {
        return Err(CandidatePathError::SidStructure(behavior.bits()));
    }
    let EndpointBehavior { code, block, node, function, argument } = behavior;
    let [high, low] = code.to_be_bytes();
    Ok(([high, low, 0, 0, block, node, function, argument], 8))
}

fn put(out: &mut Vec<u8>, kind: u8, parts: &[&[u8]]) -> Result<(), CandidatePathError> {
    let length = parts.iter().map(|part| part.len()).sum::<usize>();
    let length = u16::try_from(length).map_err(|_| CandidatePathError::TooLong)?;
    out.push(kind);
    if kind < 128 {
        out.push(u8::try_from(length).map_err(|_| CandidatePathError::TooLong)?);
    } else {
        out.extend_from_slice(&length.to_be_bytes());
    }
    parts.iter().for_each(|part| out.extend_from_slice(part));
    Ok(())
}
