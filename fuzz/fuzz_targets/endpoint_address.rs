//! Endpoint addresses: an accepted address is https to a public host, without credentials and fragment, and is accepted
//! unchanged when it is read again. Its masked form has the same host, and is restored to the same values when a client
//! sends it back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outbound::{
    addresses::{AddressRules, is_public},
    endpoint_url::EndpointUrl,
};
use webhooks::subscriptions::endpoint::masked;
use url::Host;

fuzz_target!(|text: &str| {
    let rules = AddressRules::default();
    let Ok(taken) = EndpointUrl::parse(text, &rules) else { return };
    let url = taken.url();
    assert_eq!(url.scheme(), "https");
    assert!(url.username().is_empty() && url.password().is_none() && url.fragment().is_none());
    assert_ne!(url.port(), Some(0));
    match url.host() {
        Some(Host::Ipv4(address)) => assert!(is_public(address.into())),
        Some(Host::Ipv6(address)) => assert!(is_public(address.into())),
        Some(Host::Domain(name)) => assert!(name.contains('.') && name.parse::<std::net::IpAddr>().is_err()),
        None => panic!("an address without a host"),
    }
    if url.as_str().len() <= 2048 {
        let again = EndpointUrl::parse(url.as_str(), &rules).expect("an accepted address is accepted again");
        assert_eq!(again.url(), url);
    }
    let shown = masked::url(text);
    assert_eq!(masked::unmask_url(&shown, text).as_deref(), Ok(text));
    if shown.len() <= 2048 {
        let shown = EndpointUrl::parse(&shown, &rules).expect("a shown address can be sent back");
        assert_eq!(shown.url().host(), url.host());
    }
});
