//! Patterns of communities, of AS paths and of interface names: read from text, checked there, matched often.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use bgp_wire::attr::{Community, ExtCommunity, LargeCommunity};
use regex::bytes::{Regex, RegexBuilder};

/// A community of any kind as a number, so that one kind of set does for all three.
pub trait Number: Copy + Eq {
    /// It, in the low bits.
    #[must_use]
    fn number(self) -> u128;
}

impl Number for Community {
    fn number(self) -> u128 {
        self.0.into()
    }
}

impl Number for LargeCommunity {
    fn number(self) -> u128 {
        u128::from(self.global) << 64 | u128::from(self.local1) << 32 | u128::from(self.local2)
    }
}

impl Number for ExtCommunity {
    fn number(self) -> u128 {
        self.0.into()
    }
}

/// A text that is no pattern of communities.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a community or pattern of communities: \"{0}\" (expected {1})")]
pub struct CommunityPatternError(String, &'static str);

macro_rules! pattern {
    ($(#[$doc:meta])* $name:ident of $community:ident) => {
        $(#[$doc])*
        #[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name {
            value: u128,
            /// The bits that count.
            mask: u128,
        }

        impl $name {
            /// Whether it stands for this community.
            #[must_use]
            pub fn matches(&self, community: $community) -> bool {
                community.number() & self.mask == self.value
            }

            pub(crate) const fn bits(&self) -> (u128, u128) {
                (self.value, self.mask)
            }
        }

        impl From<$community> for $name {
            fn from(community: $community) -> Self {
                Self { value: community.number(), mask: u128::MAX }
            }
        }
    };
}

pattern! {
    /// A community, or all with one half in common: `65000:1`, `65000:*`, `*:1`, `*:*`, `no-export`.
    CommunityPattern of Community
}
pattern! {
    /// A large community, or all that agree in some parts: `65000:1:2`, `65000:1:*`, `65000:*:*`.
    LargeCommunityPattern of LargeCommunity
}
pattern! {
    /// An extended community, or all of one kind and administrator: `rt:65000:1`, `rt:65000:*`, `soo:192.0.2.1:*`,
    /// `ext:` with sixteen hexadecimal digits.
    ExtCommunityPattern of ExtCommunity
}

/// Numbers up to `max`, or `*` for any, with colons between them; as value and mask.
fn parts<const N: usize>(text: &str, width: u32) -> Option<(u128, u128)> {
    let mut found = text.split(':');
    let (mut value, mut mask) = (0, 0);
    for _ in 0..N {
        let part = found.next()?;
        let digits = !part.is_empty() && part.bytes().all(|octet| octet.is_ascii_digit());
        let (bits, counts) = match part {
            "*" => (0, 0),
            _ if digits => (part.parse().ok().filter(|number| *number < 1 << width)?, (1 << width) - 1),
            _ => return None,
        };
        (value, mask) = (value << width | bits, mask << width | counts);
    }
    found.next().is_none().then_some((value, mask))
}

fn show(f: &mut fmt::Formatter<'_>, (value, mask): (u128, u128), count: u32, width: u32) -> fmt::Result {
    for at in (0..count).rev() {
        let all = (1u128 << width) - 1;
        match mask >> (at * width) & all {
            0 => f.write_str("*")?,
            _ => write!(f, "{}", value >> (at * width) & all)?,
        }
        if at > 0 {
            f.write_str(":")?;
        }
    }
    Ok(())
}

impl FromStr for CommunityPattern {
    type Err = CommunityPatternError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(community) = text.parse::<Community>() {
            return Ok(community.into());
        }
        let wanted = "such as 65000:1, 65000:* or no-export";
        let (value, mask) =
            parts::<2>(text, 16).ok_or_else(|| CommunityPatternError(text.to_owned(), wanted))?;
        Ok(Self { value, mask })
    }
}

impl fmt::Display for CommunityPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(f, self.bits(), 2, 16)
    }
}

impl FromStr for LargeCommunityPattern {
    type Err = CommunityPatternError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(community) = text.parse::<LargeCommunity>() {
            return Ok(community.into());
        }
        let wanted = "such as 65000:1:2 or 65000:1:*";
        let (value, mask) =
            parts::<3>(text, 32).ok_or_else(|| CommunityPatternError(text.to_owned(), wanted))?;
        Ok(Self { value, mask })
    }
}

impl fmt::Display for LargeCommunityPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(f, self.bits(), 3, 32)
    }
}

/// The bits of an extended community that are its administrator's own: behind a 2-octet AS number there is more room than
/// behind anything else (RFC 4360 section 3).
const fn local_bits(community: ExtCommunity) -> u128 {
    if community.octets()[0] & 0x3f == 0 { 0xffff_ffff } else { 0xffff }
}

impl FromStr for ExtCommunityPattern {
    type Err = CommunityPatternError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wanted = "such as rt:65000:1, rt:65000:* or ext: and sixteen hexadecimal digits";
        let error = || CommunityPatternError(text.to_owned(), wanted);
        let Some(all) = text.strip_suffix(":*") else {
            return text.parse::<ExtCommunity>().map(Self::from).map_err(|_| error());
        };
        let least: ExtCommunity = format!("{all}:0").parse().map_err(|_| error())?;
        Ok(Self { value: least.number(), mask: !local_bits(least) })
    }
}

impl fmt::Display for ExtCommunityPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let community = ExtCommunity(self.value as u64).to_string();
        match community.rsplit_once(':') {
            Some((all, _)) if self.mask != u128::MAX => write!(f, "{all}:*"),
            Some(_) | None => f.write_str(&community),
        }
    }
}

/// A regular expression over an AS path as text: AS numbers with blanks between them, sets in `{}` with commas, as
/// [`bgp_wire::attr::AsPath`] is shown. `_` stands for what is between AS numbers: a blank, a comma, a bracket, or either
/// end of the path. It matches anywhere in the path unless `^` and `$` say otherwise. What it costs is linear in the length
/// of the path, whatever it says, and it has at most 64 KiB compiled.
#[derive(Clone, Debug)]
pub struct AsPathPattern {
    text: Arc<str>,
    regex: Regex,
}

/// Why a text is no pattern of AS paths.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AsPathPatternError {
    /// It is not a regular expression.
    #[error("not a pattern of AS paths: \"{text}\": {why}")]
    Syntax {
        /// The pattern.
        text: String,
        /// What is wrong, in words.
        why: String,
    },
    /// It would take too much memory.
    #[error("too large a pattern of AS paths: \"{0}\" (make repetitions smaller, or split it)")]
    TooLarge(String),
}

impl AsPathPattern {
    /// Octets of a compiled pattern.
    const LARGEST: usize = 64 * 1024;

    /// Whether it matches a path, given as text.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        self.regex.is_match(path.as_bytes())
    }

    /// The pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for AsPathPattern {
    type Err = AsPathPatternError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            // Others take it for the empty path.
            let why = "it would match every path; the empty one is ^$".to_owned();
            return Err(AsPathPatternError::Syntax { text: text.to_owned(), why });
        }
        let mut expression = String::new();
        let mut escaped = false;
        let mut class = 0;
        for letter in text.chars() {
            match letter {
                '_' if !escaped && class == 0 => expression.push_str(r"(?:^|$|[ ,{}()\[\]])"),
                _ => expression.push(letter),
            }
            if !escaped {
                match letter {
                    '[' => class += 1,
                    ']' if class > 0 => class -= 1,
                    _ => {}
                }
            }
            escaped = letter == '\\' && !escaped;
        }
        let regex = RegexBuilder::new(&expression)
            .unicode(false)
            .size_limit(Self::LARGEST)
            .dfa_size_limit(4 * Self::LARGEST)
            .build()
            .map_err(|error| {
                if matches!(error, regex::Error::CompiledTooBig(_)) {
                    return AsPathPatternError::TooLarge(text.to_owned());
                }
                // The last line says what is wrong, those before it show where in the translated text.
                let words = error.to_string();
                let why = words.lines().last().unwrap_or_default();
                let why = why.trim_start_matches("error: ").to_owned();
                AsPathPatternError::Syntax { text: text.to_owned(), why }
            })?;
        Ok(Self { text: text.into(), regex })
    }
}

impl fmt::Display for AsPathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for AsPathPattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for AsPathPattern {}

impl PartialOrd for AsPathPattern {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for AsPathPattern {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.text.cmp(&other.text)
    }
}

/// A name in which `*` stands for any run of characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Glob(Arc<str>);

impl Glob {
    /// This pattern.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// Whether it stands for this name.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        let mut pieces = self.0.split('*');
        let first = pieces.next().unwrap_or_default();
        let Some(mut rest) = name.strip_prefix(first) else { return false };
        let Some(last) = pieces.next_back() else { return rest.is_empty() };
        // Each piece at its first place leaves the most for those behind it.
        for piece in pieces {
            match rest.find(piece) {
                Some(at) => rest = &rest[at + piece.len()..],
                None => return false,
            }
        }
        rest.ends_with(last)
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn communities_and_their_wildcards() {
        for text in ["65000:1", "65000:*", "*:1", "*:*"] {
            assert_eq!(text.parse::<CommunityPattern>().unwrap().to_string(), text);
        }
        let half: CommunityPattern = "65000:*".parse().unwrap();
        assert!(half.matches(Community::new(65000, 7)) && !half.matches(Community::new(65001, 7)));
        let named: CommunityPattern = "no-export".parse().unwrap();
        assert!(named.matches(Community::NO_EXPORT) && named == Community::NO_EXPORT.into());
        for text in ["65536:*", "1", "1:2:3", "+1:*", ":*", "", "65000:1*"] {
            assert!(text.parse::<CommunityPattern>().is_err(), "{text}");
        }
        for text in ["65000:1:2", "4200000000:*:2", "1:*:*"] {
            assert_eq!(text.parse::<LargeCommunityPattern>().unwrap().to_string(), text);
        }
        let large: LargeCommunityPattern = "1:*:3".parse().unwrap();
        assert!(large.matches(LargeCommunity::new(1, 9, 3)) && !large.matches(LargeCommunity::new(1, 9, 4)));
        assert!("1:*".parse::<LargeCommunityPattern>().is_err());
        for text in ["rt:65000:1", "rt:65000:*", "soo:192.0.2.1:*", "rt:70000:*", "ext:030b000000000064"] {
            assert_eq!(text.parse::<ExtCommunityPattern>().unwrap().to_string(), text);
        }
        let target: ExtCommunityPattern = "rt:65000:*".parse().unwrap();
        let community = |text: &str| text.parse::<ExtCommunity>().unwrap();
        assert!(target.matches(community("rt:65000:99999")) && !target.matches(community("soo:65000:1")));
        let target: ExtCommunityPattern = "rt:192.0.2.1:*".parse().unwrap();
        assert!(target.matches(community("rt:192.0.2.1:5")) && !target.matches(community("rt:192.0.2.2:5")));
        assert!("rt:*".parse::<ExtCommunityPattern>().is_err());
    }

    #[test]
    fn paths() {
        let matches = |pattern: &str, path: &str| pattern.parse::<AsPathPattern>().unwrap().matches(path);
        for (pattern, path, expected) in [
            ("_65010_", "65010", true),
            ("_65010_", "1 65010 2", true),
            ("_65010_", "1 {2,65010} 3", true),
            ("_65010_", "165010 65011", false),
            ("^65010", "65010 1", true),
            ("^65010_", "650101 1", false),
            ("_1$", "2 1", true),
            ("^$", "", true),
            ("^$", "1", false),
            ("^[0-9]+$", "65010", true),
            ("^[0-9]+$", "65010 1", false),
            ("^65010( 65010)*$", "65010 65010 65010", true),
            (".*", "", true),
            ("_", "", true),
            (r"\d_\d", "1 2", true),
            ("_0_", "10 20", false),
        ] {
            assert_eq!(matches(pattern, path), expected, "{pattern} on {path:?}");
        }
    }

    #[test]
    fn what_does_not_compile_or_would_blow_up_is_refused_with_the_reason() {
        let error = "_65010(".parse::<AsPathPattern>().unwrap_err();
        assert_eq!(error.to_string(), "not a pattern of AS paths: \"_65010(\": unclosed group");
        let error = "".parse::<AsPathPattern>().unwrap_err();
        assert!(
            error.to_string().ends_with("\"\": it would match every path; the empty one is ^$"),
            "{error}"
        );
        let large = "((([0-9]{100}){100}){100})";
        assert_eq!(large.parse::<AsPathPattern>(), Err(AsPathPatternError::TooLarge(large.to_owned())));
        // Where others go on for ever this is over at once.
        let hard: AsPathPattern = "^(([0-9]+)*)*x$".parse().unwrap();
        assert!(!hard.matches(&"1".repeat(4000)));
    }

    #[test]
    fn globs() {
        for (pattern, name, expected) in [
            ("eth0", "eth0", true),
            ("eth0", "eth01", false),
            ("eth*", "eth0", true),
            ("*", "", true),
            ("*0", "eth0", true),
            ("e*h*0", "eth0", true),
            ("e*x*0", "eth0", false),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("**", "x", true),
            ("tap*.1*", "tap5.100", true),
        ] {
            assert_eq!(Glob::new(pattern).matches(name), expected, "{pattern} on {name}");
        }
    }
}
