//! Which addresses may be dialled: global unicast, and the networks that are excepted by configuration.
//!
//! From IANA's special-purpose registries (RFC 6890 and its successors). An IPv6 address that carries an IPv4 address
//! (mapped, compatible, 6to4, NAT64, Teredo) is judged by both.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use crate::settings::EndpointSettings;

/// The rules for endpoints.
pub type AddressRules = EndpointSettings;

impl AddressRules {
    /// Whether this address may be dialled. An exception is for the very address that is dialled, so that 127.0.0.1
    /// does not open its mapped forms.
    pub fn permit(&self, address: IpAddr) -> bool {
        self.allowed_networks.iter().any(|network: &IpNet| network.contains(&address)) || is_public(address)
    }
}

/// Whether an address is global unicast, and nothing that is carried in it is not.
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
            | (192, 31, 196)              // AS112
            | (192, 52, 193)              // AMT
            | (192, 88, 99)               // 6to4 relays, deprecated
            | (192, 168, _)               // private
            | (192, 175, 48)              // AS112
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
    let carried = |high: u16, low: u16| {
        let ([w, x], [y, z]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(w, x, y, z))
    };
    match segments {
        [0, 0, 0, 0, 0, 0, ..] => false, // unspecified, loopback, IPv4-compatible (deprecated)
        [0, 0, 0, 0, 0, 0xffff, high, low] => carried(high, low), // IPv4-mapped
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => carried(high, low), // NAT64, RFC 6052
        [0x64, 0xff9b, ..] => false,     // local-use NAT64, RFC 8215
        [0x2002, high, low, ..] => carried(high, low), // 6to4
        // 2000::/3 is all that IANA has given out, and these are set aside in it: protocol assignments with Teredo and
        // ORCHID, documentation, AS112, documentation again (RFC 9637).
        [0x2001, ..0x200 | 0xdb8, ..] | [0x2620, 0x4f, 0x8000, ..] | [0x3fff, ..0x1000, ..] => false,
        [first, ..] => (0x2000..=0x3fff).contains(&first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn public(address: &str) -> bool {
        is_public(address.parse().expect(address))
    }

    #[test]
    fn ordinary_addresses_are_public() {
        for good in [
            "1.1.1.1",
            "8.8.8.8",
            "93.184.216.34",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.17.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450:4001::1",
            "2001:4860::8888",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2002:808:808::1",
        ] {
            assert!(public(good), "{good}");
        }
    }

    #[test]
    fn everything_else_is_not() {
        for bad in [
            "0.0.0.0",
            "0.1.2.3",
            "10.255.255.255",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::8.8.8.8",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::808:808",
            "100::1",
            "2001::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "2001:10::1",
            "2001:20::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:a00:1::1",
            "2002:a9fe:a9fe::",
            "3fff::1",
            "4000::1",
            "5f00::1",
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!public(bad), "{bad}");
        }
    }

    #[test]
    fn an_exception_opens_its_own_form_only() {
        let rules =
            AddressRules { allowed_networks: vec!["127.0.0.1/32".parse().expect("a network")], allow_http: true };
        assert!(rules.permit("127.0.0.1".parse().expect("an address")));
        for other in ["127.0.0.2", "::1", "::ffff:127.0.0.1", "10.0.0.1"] {
            assert!(!rules.permit(other.parse().expect(other)), "{other}");
        }
    }

    proptest! {
        #[test]
        fn an_address_carried_in_another_is_never_more_public_than_itself(bits in any::<u32>()) {
            let inner = Ipv4Addr::from(bits);
            let [a, b, c, d] = inner.octets();
            let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
            for outer in [inner.to_ipv6_mapped(), Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low), Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1)] {
                prop_assert_eq!(is_public_v6(outer), is_public_v4(inner), "{} in {}", inner, outer);
            }
            prop_assert!(!is_public_v6(Ipv6Addr::new(0, 0, 0, 0, 0, 0, high, low)));
        }

        #[test]
        fn the_standard_library_agrees_on_what_it_knows(bits in any::<u32>()) {
            let address = Ipv4Addr::from(bits);
            if address.is_private() || address.is_loopback() || address.is_link_local() || address.is_multicast()
                || address.is_broadcast() || address.is_documentation() || address.is_unspecified() {
                prop_assert!(!is_public_v4(address));
            }
        }
    }
}
