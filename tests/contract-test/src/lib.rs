//! The attribute that registers a contract suite test, as `#[test]` does for libtest.

use proc_macro::TokenStream;
use quote::quote;
use syn::{Ident, ItemFn, parse_macro_input};

/// Registers an async function that takes an `Arc<Suite>` as a contract suite test.
///
/// - `#[contract_test]`: the test runs alongside others.
/// - `#[contract_test(in_browser)]`: the test runs alongside others, if the machine has a browser.
/// - `#[contract_test(on_demand)]`: the test runs only with `--ignored`, since it takes a long time or needs a tool
///   that not every machine has.
#[proc_macro_attribute]
pub fn contract_test(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let function = parse_macro_input!(item as ItemFn);
    let when = if attribute.is_empty() {
        quote!(BesideOthers)
    } else {
        let when = parse_macro_input!(attribute as Ident);
        match when.to_string().as_str() {
            "in_browser" => quote!(InBrowser),
            "on_demand" => quote!(OnDemand),
            _ => {
                let expected = "expected `in_browser` or `on_demand`";
                return syn::Error::new(when.span(), expected).to_compile_error().into();
            }
        }
    };
    let name = &function.sig.ident;
    let registered = quote! {
        #function

        ::inventory::submit! {
            crate::harness::Test {
                name: concat!(module_path!(), "::", stringify!(#name)),
                run: |suite| Box::pin(#name(suite)),
                when: crate::harness::When::#when,
            }
        }
    };
    registered.into()
}
