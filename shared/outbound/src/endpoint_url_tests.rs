//! All spellings of an address get the same verdict: IPv4 as in `inet_aton` and the WHATWG URL standard, and every
//! spelling of an IPv6 address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::{collection::vec, prelude::*, sample::select};

use crate::addresses::{AddressRules, is_public};
use crate::endpoint_url::{EndpointUrl, EndpointUrlError};

/// How a number is written.
#[derive(Debug, Clone, Copy)]
enum Radix {
    Decimal,
    Octal,
    Hex,
    HexCapitals,
    HexWithZeros,
    OctalWithZeros,
}

const RADIXES: &[Radix] =
    &[Radix::Decimal, Radix::Octal, Radix::Hex, Radix::HexCapitals, Radix::HexWithZeros, Radix::OctalWithZeros];

impl Radix {
    fn write(self, number: u32) -> String {
        match self {
            Self::Decimal => number.to_string(),
            Self::Octal => format!("0{number:o}"),
            Self::Hex => format!("0x{number:x}"),
            Self::HexCapitals => format!("0X{number:X}"),
            Self::HexWithZeros => format!("0x000{number:x}"),
            Self::OctalWithZeros => format!("0000{number:o}"),
        }
    }
}

/// How a character is disguised.
#[derive(Debug, Clone, Copy)]
enum Disguise {
    None,
    Percent,
    FullWidth,
    FullWidthInPercent,
    Mathematical,
}

const DISGUISES: &[Disguise] = &[
    Disguise::None,
    Disguise::None,
    Disguise::Percent,
    Disguise::FullWidth,
    Disguise::FullWidthInPercent,
    Disguise::Mathematical,
];

impl Disguise {
    fn write(self, letter: char) -> String {
        let percent = |text: String| text.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let full_width = |letter: char| {
            if letter == '.' {
                "\u{3002}".to_owned()
            } else {
                char::from_u32(u32::from(letter) + 0xfee0).expect("ASCII has full-width forms").to_string()
            }
        };
        match self {
            Self::None => letter.to_string(),
            Self::Percent => percent(letter.to_string()),
            Self::FullWidth => full_width(letter),
            Self::FullWidthInPercent => percent(full_width(letter)),
            Self::Mathematical => match letter.to_digit(10) {
                Some(digit) => char::from_u32(0x1d7ce + digit).expect("bold digits").to_string(),
                None => letter.to_string(),
            },
        }
    }
}

/// Any address, or one of a forbidden kind.
fn addresses() -> impl Strategy<Value = Ipv4Addr> {
    let starts: &[u32] =
        &[0, 0x0a00_0000, 0x6440_0000, 0x7f00_0000, 0xa9fe_0000, 0xac10_0000, 0xc0a8_0000, 0xc612_0000, 0xe000_0000];
    prop_oneof![
        any::<u32>().prop_map(Ipv4Addr::from),
        (select(starts), any::<u16>()).prop_map(|(start, low)| Ipv4Addr::from(start | u32::from(low))),
    ]
}

/// An address in one to four numbers, each in its own radix, with or without a trailing dot.
fn spelling() -> impl Strategy<Value = (Ipv4Addr, String)> {
    (addresses(), 1usize..=4, vec(select(RADIXES), 4), any::<bool>()).prop_map(|(address, parts, radixes, dot)| {
        let bits = u32::from(address);
        let mut numbers: Vec<u32> = address.octets()[..parts - 1].iter().map(|octet| u32::from(*octet)).collect();
        numbers.push(bits & u32::MAX.checked_shr(8 * (u32::try_from(parts).expect("four at most") - 1)).unwrap_or(0));
        let mut text: Vec<String> = radixes.iter().zip(numbers).map(|(radix, number)| radix.write(number)).collect();
        if dot {
            text.push(String::new());
        }
        (address, text.join("."))
    })
}

/// Every spelling of an IPv6 address: long or short, in upper or lower case, with or without a decimal end.
fn spellings_v6(address: Ipv6Addr) -> Vec<String> {
    let segments = address.segments();
    let [.., a, b, c, d] = address.octets();
    let long: Vec<String> = segments.iter().map(|segment| format!("{segment:04x}")).collect();
    let plain: Vec<String> = segments.iter().map(|segment| format!("{segment:x}")).collect();
    let decimals = format!("{}:{a}.{b}.{c}.{d}", plain[..6].join(":"));
    let all = [address.to_string(), long.join(":"), plain.join(":"), decimals];
    all.iter().flat_map(|text| [text.to_lowercase(), text.to_uppercase()]).collect()
}

/// The deprecated form of an IPv4 address in IPv6.
fn compatible(address: Ipv4Addr) -> Ipv6Addr {
    Ipv6Addr::from(u128::from(u32::from(address)))
}

fn judged(url: &str) -> Result<(), EndpointUrlError> {
    EndpointUrl::parse(url, &AddressRules::default()).map(drop)
}

/// The verdict on an address.
fn expected(address: impl Into<IpAddr>) -> Result<(), EndpointUrlError> {
    if is_public(address.into()) { Ok(()) } else { Err(EndpointUrlError::NotPublic) }
}

#[test]
fn spellings_mean_the_intended_address() {
    for spelt in
        ["0x7f.1", "0177.0.0.01", "2130706433.", "017700000001", "0X7F000001", "%31%32%37%2e%31", "127。1", "𝟏𝟐𝟕.1"]
    {
        let url = format!("https://{spelt}/");
        let parsed = url::Url::parse(&url).expect("a URL");
        assert_eq!(parsed.host_str(), Some("127.0.0.1"), "{url}");
        assert_eq!(judged(&url), Err(EndpointUrlError::NotPublic), "{url}");
    }
}

#[test]
fn numbers_that_are_no_address_are_no_url() {
    for bad in ["256.0.0.1", "1.2.3.256", "1.2.65536", "4294967296", "0x100000000", "1.2.3.4.5", "08.8.8.8", "1..2"] {
        assert!(judged(&format!("https://{bad}/")).is_err(), "{bad}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_048))]

    #[test]
    fn an_address_is_judged_the_same_in_every_spelling((address, spelt) in spelling(), port in 1u16..) {
        prop_assert_eq!(judged(&format!("https://{spelt}/x?y=z")), expected(address), "{}", spelt);
        prop_assert_eq!(judged(&format!("HTTPS://{spelt}:{port}/")), expected(address), "{}", spelt);
    }

    #[test]
    fn a_disguise_changes_nothing((address, spelt) in spelling(), disguises in vec(select(DISGUISES), 60)) {
        let host: String =
            spelt.chars().zip(disguises).map(|(letter, disguise)| disguise.write(letter)).collect();
        prop_assert_eq!(judged(&format!("https://{host}/")), expected(address), "{} as {}", spelt, host);
    }

    #[test]
    fn an_ipv6_address_is_judged_the_same_in_every_spelling(bits in any::<u128>(), inner in addresses(), port in 1u16..) {
        let unicast = Ipv6Addr::from(bits >> 3 | 1 << 125);
        let nat64 = Ipv6Addr::from(0x64_ff9bu128 << 96 | u128::from(u32::from(inner)));
        let six_to_four = Ipv6Addr::from(0x2002u128 << 112 | u128::from(u32::from(inner)) << 80 | bits >> 48);
        for address in [Ipv6Addr::from(bits), unicast, inner.to_ipv6_mapped(), compatible(inner), nat64, six_to_four] {
            for spelt in spellings_v6(address) {
                prop_assert_eq!(judged(&format!("https://[{spelt}]:{port}/")), expected(address), "{}", spelt);
            }
        }
    }

    #[test]
    fn a_zone_is_refused_with_any_address(bits in any::<u128>(), zone in "[a-z0-9]{1,8}") {
        let address = Ipv6Addr::from(bits);
        for separator in ["%", "%25"] {
            let url = format!("https://[{address}{separator}{zone}]/");
            prop_assert_eq!(judged(&url), Err(EndpointUrlError::NotAUrl), "{}", url);
        }
    }

    #[test]
    fn a_port_changes_nothing_but_0(address in addresses(), port in any::<u16>()) {
        let expected = if port == 0 { expected(address).and(Err(EndpointUrlError::Port)) } else { expected(address) };
        prop_assert_eq!(judged(&format!("https://{address}:{port}/")), expected);
    }

    #[test]
    fn an_accepted_address_is_public_by_name_or_address(text in "https://[0-9a-zA-Z.:%\\[\\]@#x。１-]{1,30}/?") {
        if let Ok(taken) = EndpointUrl::parse(&text, &AddressRules::default()) {
            match taken.url().host() {
                Some(url::Host::Ipv4(address)) => prop_assert!(is_public(address.into()), "{}", text),
                Some(url::Host::Ipv6(address)) => prop_assert!(is_public(address.into()), "{}", text),
                Some(url::Host::Domain(name)) => {
                    prop_assert!(name.contains('.') && name.parse::<IpAddr>().is_err(), "{}", text);
                }
                None => prop_assert!(false, "{} has no host", text),
            }
            prop_assert_eq!(taken.url().scheme(), "https");
            prop_assert!(taken.url().username().is_empty() && taken.url().password().is_none());
        }
    }
}
