//! The addresses that may be dialled: global unicast, and configured exceptions.
//!
//! The rules follow IANA's special-purpose registries (RFC 6890 and its successors). An IPv6 address that embeds an
//! IPv4 address (mapped, 6to4, NAT64) is public if the embedded address is. The deprecated forms (compatible,
//! translated, and Teredo, which embeds two) are never public.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

use ipnet::IpNet;

use base::{Environment, FromEnvironment, environment::Switch};

/// The rules for outbound addresses: `DELIVERY_ALLOWED_NETWORKS` and `DELIVERY_ALLOW_HTTP`.
#[derive(Debug, Clone, Default)]
pub struct AddressRules {
    /// Networks that are allowed although they are not public. Empty by default.
    pub allowed_networks: Vec<IpNet>,
    /// Whether `http` is allowed in addition to `https`. It is not by default.
    pub allow_http: bool,
}

impl AddressRules {
    /// Whether this address may be dialled. An allowed network applies only to the literal address: allowing 127.0.0.1
    /// does not allow ::ffff:127.0.0.1.
    pub fn permit(&self, address: IpAddr) -> bool {
        self.allowed_networks.iter().any(|network: &IpNet| network.contains(&address)) || is_public(address)
    }
}

/// Whether an address and any embedded one are global unicast.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// <https://www.iana.org/assignments/iana-ipv4-special-registry>
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let banned = matches!(
        (a, b, c),
        (0 | 10 | 127, _, _)              // this network, private, loopback
            | (100, 64..=127, _)          // shared address space, RFC 6598
            | (169, 254, _)               // link local; the cloud's metadata service
            | (172, 16..=31, _)           // private
            | (192, 0, 0 | 2)             // protocol assignments, documentation
            | (192, 31, 196)              // AS112: answers for private addresses' names, RFC 7535
            | (192, 52, 193)              // AMT relays, RFC 7450
            | (192, 88, 99)               // 6to4 relays, deprecated
            | (192, 168, _)               // private
            | (192, 175, 48)              // AS112, RFC 7534
            | (198, 18..=19, _)           // benchmarking
            | (198, 51, 100)              // documentation
            | (203, 0, 113)               // documentation
            | (224..=255, _, _) // multicast, reserved, broadcast
    );
    !banned
}

/// <https://www.iana.org/assignments/iana-ipv6-special-registry>
fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let embedded = |high: u16, low: u16| {
        let [w, x] = high.to_be_bytes();
        let [y, z] = low.to_be_bytes();
        is_public_v4(Ipv4Addr::new(w, x, y, z))
    };
    match segments {
        [0, 0, 0, 0, 0, 0, ..] => false, // unspecified, loopback, IPv4-compatible (deprecated)
        [0, 0, 0, 0, 0, 0xffff, high, low] => embedded(high, low), // IPv4-mapped
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => embedded(high, low), // NAT64, RFC 6052
        [0x64, 0xff9b, ..] => false,     // local-use NAT64, RFC 8215
        [0x2002, high, low, ..] => embedded(high, low), // 6to4
        // IANA has allocated only 2000::/3. Reserved within it, in this order: protocol assignments with Teredo,
        // benchmarking, AMT, AS112 and ORCHID (2001::/23), documentation, AS112, documentation (RFC 9637). Discard
        // (100::/64), SRv6 (5f00::/16), unique, site and link local, and multicast are outside of it.
        [0x2001, (..0x200), ..] | [0x2001, 0xdb8, ..] | [0x2620, 0x4f, 0x8000, ..] | [0x3fff, (..0x1000), ..] => false,
        [first, ..] => (0x2000..=0x3fff).contains(&first),
    }
}

impl FromEnvironment for AddressRules {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        let networks = environment.parsed("DELIVERY_ALLOWED_NETWORKS", Networks(Vec::new()));
        let allow_http = environment.parsed("DELIVERY_ALLOW_HTTP", Switch(false));
        Some(Self { allowed_networks: networks?.0, allow_http: allow_http?.0 })
    }
}

/// Networks, separated by commas.
#[derive(Debug, Clone, Default)]
pub struct Networks(pub Vec<IpNet>);

impl FromStr for Networks {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let networks: Result<_, _> = text.split(',').map(|network| network.trim().parse()).collect();
        networks.map(Self).map_err(|_| "not a list of networks such as `10.0.0.0/8,fd00::/8`")
    }
}

#[cfg(test)]
mod settings_tests {
    use base::environment::read_from;

    use super::*;

    #[test]
    fn only_public_addresses_over_https_are_allowed_by_default() {
        let default = read_from::<AddressRules>(|_| None).expect("the default");
        assert!(!default.allow_http && default.allowed_networks.is_empty());
        let error = read_from::<AddressRules>(|name| {
            Some(if name == "DELIVERY_ALLOW_HTTP" { "yes" } else { "10.0.0.0/33" }.into())
        });
        let faults = error.expect_err("refused").0;
        assert!(
            faults[0].starts_with("DELIVERY_ALLOWED_NETWORKS") && faults[1].starts_with("DELIVERY_ALLOW_HTTP"),
            "{faults:?}"
        );
    }
}
