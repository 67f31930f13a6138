//! The rules compared with IANA's registries, written here as networks rather than as the rules' patterns.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};
use proptest::{prelude::*, sample::select};

use super::addresses::{AddressRules, is_public};

/// Every block of the IPv4 special-purpose registry, and the special blocks of the address space registry.
/// <https://www.iana.org/assignments/iana-ipv4-special-registry>
/// <https://www.iana.org/assignments/ipv4-address-space>
const SPECIAL_V4: &[(&str, &str)] = &[
    ("0.0.0.0/8", "this network"),
    ("0.0.0.0/32", "this host on this network"),
    ("10.0.0.0/8", "private use"),
    ("100.64.0.0/10", "shared address space"),
    ("127.0.0.0/8", "loopback"),
    ("169.254.0.0/16", "link local"),
    ("172.16.0.0/12", "private use"),
    ("192.0.0.0/24", "IETF protocol assignments"),
    ("192.0.0.0/29", "IPv4 service continuity prefix"),
    ("192.0.0.8/32", "IPv4 dummy address"),
    ("192.0.0.9/32", "port control protocol anycast"),
    ("192.0.0.10/32", "TURN anycast"),
    ("192.0.0.170/32", "NAT64 discovery"),
    ("192.0.0.171/32", "NAT64 discovery"),
    ("192.0.2.0/24", "documentation"),
    ("192.31.196.0/24", "AS112"),
    ("192.52.193.0/24", "AMT"),
    ("192.88.99.0/24", "6to4 relay anycast"),
    ("192.168.0.0/16", "private use"),
    ("192.175.48.0/24", "direct delegation AS112 service"),
    ("198.18.0.0/15", "benchmarking"),
    ("198.51.100.0/24", "documentation"),
    ("203.0.113.0/24", "documentation"),
    ("224.0.0.0/4", "multicast"),
    ("240.0.0.0/4", "reserved"),
    ("255.255.255.255/32", "limited broadcast"),
];

/// Every block of the IPv6 special-purpose registry that does not carry an IPv4 address, and the blocks of the address
/// space registry that are not global unicast.
/// <https://www.iana.org/assignments/iana-ipv6-special-registry>
/// <https://www.iana.org/assignments/ipv6-address-space>
const SPECIAL_V6: &[(&str, &str)] = &[
    ("::/128", "unspecified"),
    ("::1/128", "loopback"),
    ("::/96", "IPv4-compatible, deprecated"),
    ("::/8", "reserved; mapped addresses are judged by the embedded one"),
    ("::ffff:0:0:0/96", "IPv4-translated, RFC 2765"),
    ("64:ff9b:1::/48", "local-use NAT64"),
    ("100::/64", "discard only"),
    ("100:0:0:1::/64", "dummy prefix"),
    ("100::/8", "reserved"),
    ("200::/7", "reserved"),
    ("400::/6", "reserved"),
    ("800::/5", "reserved"),
    ("1000::/4", "reserved"),
    ("2001::/23", "IETF protocol assignments"),
    ("2001::/32", "Teredo"),
    ("2001:1::1/128", "port control protocol anycast"),
    ("2001:1::2/128", "TURN anycast"),
    ("2001:1::3/128", "DNS-SD anycast"),
    ("2001:2::/48", "benchmarking"),
    ("2001:3::/32", "AMT"),
    ("2001:4:112::/48", "AS112"),
    ("2001:10::/28", "ORCHID, deprecated"),
    ("2001:20::/28", "ORCHIDv2"),
    ("2001:30::/28", "drone remote identification"),
    ("2001:db8::/32", "documentation"),
    ("2620:4f:8000::/48", "direct delegation AS112 service"),
    ("3fff::/20", "documentation"),
    ("4000::/3", "reserved"),
    ("5f00::/16", "segment routing identifiers"),
    ("6000::/3", "reserved"),
    ("8000::/3", "reserved"),
    ("a000::/3", "reserved"),
    ("c000::/3", "reserved"),
    ("e000::/4", "reserved"),
    ("f000::/5", "reserved"),
    ("f800::/6", "reserved"),
    ("fc00::/7", "unique local"),
    ("fe00::/9", "reserved"),
    ("fe80::/10", "link local"),
    ("fec0::/10", "site local, deprecated"),
    ("ff00::/8", "multicast"),
];

/// The networks in which the verdict depends on the embedded IPv4 address, with the position of its first bit.
const CARRIERS: &[(&str, u32)] = &[("::ffff:0:0/96", 96), ("64:ff9b::/96", 96), ("2002::/16", 16)];

fn v4(network: &str) -> Ipv4Net {
    network.parse().expect(network)
}

fn v6(network: &str) -> Ipv6Net {
    network.parse().expect(network)
}

fn registered_v4(address: Ipv4Addr) -> Option<&'static str> {
    SPECIAL_V4.iter().find(|(network, _)| v4(network).contains(&address)).map(|(_, purpose)| *purpose)
}

fn registered_v6(address: Ipv6Addr) -> Option<&'static str> {
    if let Some((_, first_bit)) = CARRIERS.iter().find(|(network, _)| v6(network).contains(&address)) {
        let carried = u128::from(address) << first_bit >> 96;
        return registered_v4(Ipv4Addr::from(u32::try_from(carried).expect("32 bits are left")));
    }
    SPECIAL_V6.iter().find(|(network, _)| v6(network).contains(&address)).map(|(_, purpose)| *purpose)
}

fn registered(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => registered_v4(address),
        IpAddr::V6(address) => registered_v6(address),
    }
}

fn judge(address: impl Into<IpAddr>) {
    let address = address.into();
    assert_eq!(is_public(address), registered(address).is_none(), "{address}: {:?}", registered(address));
}

/// An address in a special block, near one, or anywhere.
fn addresses_v4() -> impl Strategy<Value = Ipv4Addr> {
    let inside = (select(SPECIAL_V4), any::<u32>()).prop_map(|((network, _), bits)| {
        let network = v4(network);
        Ipv4Addr::from(u32::from(network.network()) | (bits & u32::from(network.hostmask())))
    });
    let beside = (select(SPECIAL_V4), -300i64..300, any::<bool>()).prop_map(|((network, _), distance, at_end)| {
        let edge = if at_end { v4(network).broadcast() } else { v4(network).network() };
        let beside = (i64::from(u32::from(edge)) + distance).clamp(0, i64::from(u32::MAX));
        Ipv4Addr::from(u32::try_from(beside).expect("within the limits"))
    });
    prop_oneof![any::<u32>().prop_map(Ipv4Addr::from), inside, beside]
}

fn addresses_v6() -> impl Strategy<Value = Ipv6Addr> {
    let blocks: Vec<Ipv6Net> = SPECIAL_V6
        .iter()
        .map(|(network, _)| v6(network))
        .chain(CARRIERS.iter().map(|(network, _)| v6(network)))
        .collect();
    let inside = (select(blocks.clone()), any::<u128>()).prop_map(|(network, bits)| {
        Ipv6Addr::from(u128::from(network.network()) | (bits & u128::from(network.hostmask())))
    });
    let beside = (select(blocks), 0u128..300, any::<[bool; 2]>()).prop_map(|(network, distance, [at_end, before])| {
        let edge = u128::from(if at_end { network.broadcast() } else { network.network() });
        Ipv6Addr::from(if before { edge.saturating_sub(distance) } else { edge.saturating_add(distance) })
    });
    let unicast = any::<u128>().prop_map(|bits| Ipv6Addr::from(bits >> 3 | 1 << 125));
    prop_oneof![any::<u128>().prop_map(Ipv6Addr::from), inside, beside, unicast]
}

/// All IPv6 forms that embed an IPv4 address, with arbitrary other bits, and whether the form may be public.
fn carrying(inner: Ipv4Addr, noise: u128) -> Vec<(Ipv6Addr, bool)> {
    let bits = u128::from(u32::from(inner));
    let low = noise & 0xffff_ffff;
    let teredo: u128 = 0x2001_0000 << 96;
    let address = Ipv6Addr::from;
    vec![
        (inner.to_ipv6_mapped(), true),
        (address(0x64_ff9b << 96 | bits), true),
        (address(0x2002 << 112 | bits << 80 | noise >> 48), true),
        (address(bits), false),                                              // compatible
        (address(0xffff << 48 | bits), false),                               // translated, RFC 2765
        (address(0xffff << 32 | bits ^ (1 << 48)), false),                   // almost mapped
        (address(0x64_ff9b_0001 << 80 | noise >> 48 << 32 | bits), false),   // local-use NAT64, RFC 8215
        (address(teredo | bits << 64 | low), false),                         // as the Teredo server
        (address(teredo | 0x5db8_d822 << 64 | (bits ^ 0xffff_ffff)), false), // as the obfuscated Teredo client
        (address(teredo | bits << 64 | (bits ^ 0xffff_ffff)), false),        // as both
    ]
}

#[test]
fn every_registered_block_is_banned_from_its_first_address_to_its_last() {
    for (network, purpose) in SPECIAL_V4 {
        let network = v4(network);
        for address in [network.network(), network.broadcast()] {
            assert!(!is_public(address.into()), "{address}: {purpose}");
        }
    }
    for (network, purpose) in SPECIAL_V6 {
        let network = v6(network);
        for address in [network.network(), network.broadcast()] {
            assert!(!is_public(address.into()), "{address}: {purpose}");
        }
    }
}

#[test]
fn addresses_beside_a_block_are_judged_by_their_own_registration() {
    for (network, _) in SPECIAL_V4 {
        let first = u32::from(v4(network).network());
        let last = u32::from(v4(network).broadcast());
        judge(Ipv4Addr::from(first.saturating_sub(1)));
        judge(Ipv4Addr::from(last.saturating_add(1)));
    }
    for network in SPECIAL_V6.iter().chain(&[("2000::/3", "global unicast")]).map(|(network, _)| v6(network)) {
        let first = u128::from(network.network());
        let last = u128::from(network.broadcast());
        judge(Ipv6Addr::from(first.saturating_sub(1)));
        judge(Ipv6Addr::from(last.saturating_add(1)));
    }
}

#[test]
fn every_block_of_256_addresses_is_judged_as_it_is_registered() {
    // Any smaller block in the registry lies within a larger one with the same verdict.
    let special: Vec<(u32, u32)> = SPECIAL_V4
        .iter()
        .map(|(network, _)| (u32::from(v4(network).network()), u32::from(v4(network).broadcast())))
        .collect();
    for block in 0..1u32 << 24 {
        let address = block << 8 | block & 0xff;
        let registered = special.iter().any(|(first, last)| (*first..=*last).contains(&address));
        assert_eq!(is_public(Ipv4Addr::from(address).into()), !registered, "{}", Ipv4Addr::from(address));
    }
}

#[test]
fn ordinary_addresses_are_public() {
    for good in [
        "1.1.1.1",
        "8.8.8.8",
        "93.184.216.34",
        "2606:4700::1111",
        "2a00:1450:4001::1",
        "2001:4860::8888",
        "2001:200::1",
        "::ffff:8.8.8.8",
        "64:ff9b::808:808",
        "2002:808:808::1",
    ] {
        assert!(is_public(good.parse().expect(good)), "{good}");
    }
}

#[test]
fn an_exception_opens_its_own_form_only() {
    let rules = AddressRules { allowed_networks: vec!["127.0.0.1/32".parse().expect("a network")], allow_http: true };
    assert!(rules.permit("127.0.0.1".parse().expect("an address")));
    for other in ["127.0.0.2", "::1", "::ffff:127.0.0.1", "::7f00:1", "64:ff9b::7f00:1", "2002:7f00:1::", "10.0.0.1"] {
        assert!(!rules.permit(other.parse().expect(other)), "{other}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_096))]

    #[test]
    fn any_ipv4_address_is_judged_as_it_is_registered(address in addresses_v4()) {
        judge(address);
    }

    #[test]
    fn any_ipv6_address_is_judged_as_it_is_registered(address in addresses_v6()) {
        judge(address);
    }

    #[test]
    fn an_address_carried_in_another_is_never_more_public_than_itself(inner in addresses_v4(), noise in any::<u128>()) {
        for (outer, may_be_public) in carrying(inner, noise) {
            prop_assert_eq!(is_public(outer.into()), may_be_public && is_public(inner.into()), "{} in {}", inner, outer);
        }
    }

    #[test]
    fn the_standard_library_agrees_on_what_it_knows(v4 in addresses_v4(), v6 in addresses_v6()) {
        let special = v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_multicast()
            || v4.is_broadcast() || v4.is_documentation() || v4.is_unspecified();
        prop_assert!(!(special && is_public(v4.into())), "{}", v4);
        let special = v6.is_loopback() || v6.is_unspecified() || v6.is_multicast() || v6.is_unique_local()
            || v6.is_unicast_link_local();
        prop_assert!(!(special && is_public(v6.into())), "{}", v6);
    }
}
