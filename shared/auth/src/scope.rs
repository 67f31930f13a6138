//! The 30 scopes, each a section and an action. No scope implies another.

use std::fmt;

use problem::near;
use serde::{Deserialize, Serialize};

macro_rules! scopes {
    ($($variant:ident = $name:literal,)*) => {
        /// One scope.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Scope {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl Scope {
            /// All scopes, in the order of the contract's table.
            pub const ALL: [Scope; 30] = [$(Scope::$variant,)*];

            /// The scope's name on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The scope with this name; names are case-sensitive (RFC 6749 §3.3).
            pub fn parse(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

scopes! {
    AccountRead = "account.read",
    AccountWrite = "account.write",
    AccountRemove = "account.remove",
    InventoryRead = "inventory.read",
    InventoryWrite = "inventory.write",
    InventoryRemove = "inventory.remove",
    BookingRead = "booking.read",
    BookingWrite = "booking.write",
    BookingRemove = "booking.remove",
    MarketingRead = "marketing.read",
    MarketingWrite = "marketing.write",
    MarketingRemove = "marketing.remove",
    ContentRead = "content.read",
    ContentWrite = "content.write",
    ContentRemove = "content.remove",
    AnalyticsRead = "analytics.read",
    AnalyticsWrite = "analytics.write",
    AnalyticsRemove = "analytics.remove",
    IntegrationsRead = "integrations.read",
    IntegrationsWrite = "integrations.write",
    IntegrationsRemove = "integrations.remove",
    PaymentRead = "payment.read",
    PaymentWrite = "payment.write",
    PaymentRemove = "payment.remove",
    AccountingRead = "accounting.read",
    AccountingWrite = "accounting.write",
    AccountingRemove = "accounting.remove",
    McpRead = "mcp.read",
    McpWrite = "mcp.write",
    McpRemove = "mcp.remove",
}

impl Scope {
    /// The message about a string that is not a scope.
    pub fn none_is(given: &str) -> String {
        const WHAT: &str = "must be one of the service's scopes";
        near::none_of(WHAT, given, Self::ALL.map(Self::as_str), "all scopes are listed at /#scopes")
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of scopes. Written as a space-separated list, in the order of the contract's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Scopes(u64);

const _: () = assert!(Scope::ALL.len() < 64, "a set of scopes has a bit for each");

/// A string that is not a scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no scope `{0}`")]
pub struct UnknownScope(pub String);

impl Scopes {
    /// The set of all scopes.
    pub const ALL: Self = Self((1 << Scope::ALL.len()) - 1);

    /// Parses a space-delimited list. A repeated scope counts once.
    pub fn parse(list: &str) -> Result<Self, UnknownScope> {
        list.split(' ')
            .filter(|name| !name.is_empty())
            .map(|name| Scope::parse(name).ok_or_else(|| UnknownScope(name.to_owned())))
            .collect()
    }

    /// Whether the set has this scope.
    pub const fn contains(self, scope: Scope) -> bool {
        self.0 & 1 << scope as u32 != 0
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The scopes in this set but not in the other one.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The scopes, in the order of the contract's table.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.contains(*scope))
    }
}

impl From<Scope> for Scopes {
    fn from(scope: Scope) -> Self {
        Self::from_iter([scope])
    }
}

impl TryFrom<String> for Scopes {
    type Error = UnknownScope;

    fn try_from(list: String) -> Result<Self, UnknownScope> {
        Self::parse(&list)
    }
}

impl From<Scopes> for String {
    fn from(scopes: Scopes) -> Self {
        scopes.to_string()
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |bits, scope| bits | 1 << scope as u32))
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, scope) in self.iter().enumerate() {
            write!(f, "{}{scope}", if position == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scopes_are_ten_sections_by_three_actions() {
        let sections = [
            "account",
            "inventory",
            "booking",
            "marketing",
            "content",
            "analytics",
            "integrations",
            "payment",
            "accounting",
            "mcp",
        ];
        let expected: Vec<_> = sections
            .iter()
            .flat_map(|section| ["read", "write", "remove"].map(|action| format!("{section}.{action}")))
            .collect();
        assert_eq!(Scope::ALL.map(|scope| scope.to_string()).to_vec(), expected);
        for scope in Scope::ALL {
            assert_eq!(Scope::parse(scope.as_str()), Some(scope));
        }
    }

    #[test]
    fn a_list_is_accepted_whole_or_refused_by_its_first_unknown_name() {
        let scopes = Scopes::parse("mcp.read account.read mcp.read").expect("two scopes");
        assert_eq!(scopes.to_string(), "account.read mcp.read");
        assert_eq!(Scopes::parse("account.read Account.read"), Err(UnknownScope("Account.read".into())));
        assert_eq!(Scopes::ALL.iter().count(), 30);
        assert_eq!(Scopes::ALL.without(scopes).iter().count(), 28);
        assert!(Scopes::parse("").expect("none").is_empty());
    }

    #[test]
    fn an_unknown_scope_is_repeated_with_similar_ones_and_where_all_are() {
        for (given, near) in [
            ("integrations.publish", "integrations."),
            ("Integrations.Write", "integrations.write"),
            ("intergations.read", "integrations.read"),
            ("admin", ""),
        ] {
            let message = Scope::none_is(given);
            let expected = if near.is_empty() { String::from("; all") } else { format!(" (did you mean {near}") };
            assert!(message.contains(&format!("but `{given}` is unknown{expected}")), "{message}");
            assert!(message.ends_with("listed at /#scopes"), "{message}");
        }
    }

    #[test]
    fn one_scope_does_not_imply_another() {
        for scope in Scope::ALL {
            let one: Scopes = [scope].into_iter().collect();
            assert_eq!(one.iter().collect::<Vec<_>>(), [scope]);
        }
    }
}
