//! Names and documentation.

/// Words of field names that say more than the name does.
const MEANINGS: &[(&str, &str)] = &[
    ("sw_if_index", "The interface."),
    ("retval", "How it went."),
    ("is_add", "Add or remove."),
    ("is_del", "Remove, instead of add."),
    ("is_ip6", "IPv6, instead of IPv4."),
    ("is_ipv6", "IPv6, instead of IPv4."),
    ("enable_disable", "On or off."),
    ("enable", "On or off."),
    ("is_enable", "On or off."),
    ("table_id", "The table."),
    ("vrf_id", "The table."),
    ("name", "The name."),
    ("pid", "Chosen with the subscription, comes back in every event."),
    ("prefix", "The prefix."),
    ("address", "The address."),
    ("port", "The port."),
    ("cursor", "Where to go on."),
    ("flags", "A set of bits."),
    ("len", "The length in bits."),
    ("af", "The family."),
    ("mac_address", "The Ethernet address."),
    ("user_instance", "The number in the interface's name."),
    ("instance", "The number in the interface's name; all ones lets VPP choose."),
];

/// `ip_table_add_del` as a type: `IpTableAddDel`.
pub(crate) fn camel(name: &str) -> String {
    name.split('_')
        .map(|word| {
            let mut letters = word.chars();
            letters
                .next()
                .map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + letters.as_str())
        })
        .collect()
}

/// A field's name in Rust.
pub(crate) fn ident(name: &str) -> String {
    match name {
        "type" | "mod" | "move" | "ref" | "match" | "in" | "use" => format!("r#{name}"),
        name => name.to_owned(),
    }
}

/// What a field is.
pub(crate) fn field_doc(name: &str) -> String {
    MEANINGS.iter().find(|(known, _)| *known == name).map_or_else(
        || {
            let words = name.replace('_', " ");
            let mut letters = words.chars();
            let first = letters.next().map(|first| first.to_ascii_uppercase()).unwrap_or_default();
            format!("{first}{} (`{name}`).", letters.as_str())
        },
        |(_, meaning)| (*meaning).to_owned(),
    )
}

/// The values of an enum without what their names have in common.
pub(crate) fn constants(kind: &str, values: &[(String, u64)]) -> Vec<(String, u64)> {
    let words = |name: &str| name.split('_').map(str::to_owned).collect::<Vec<_>>();
    let all: Vec<Vec<String>> = values.iter().map(|(name, _)| words(name)).collect();
    let kind_words = words(&kind.to_ascii_uppercase());
    let common = match all.as_slice() {
        [] => 0,
        [one] => one
            .iter()
            .take_while(|word| {
                kind_words.contains(word) || kind_words.contains(&format!("{word}S")) || *word == "API"
            })
            .count(),
        [first, rest @ ..] => (0..first.len())
            .take_while(|at| rest.iter().all(|other| other.get(*at) == first.get(*at)))
            .count(),
    };
    all.iter()
        .zip(values)
        .map(|(words, (_, value))| {
            let mut from = common.min(words.len() - 1);
            while from > 0 && words[from].starts_with(|first: char| first.is_ascii_digit()) {
                from -= 1;
            }
            (words[from..].join("_"), *value)
        })
        .collect()
}
