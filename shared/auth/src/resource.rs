//! What a token is for (RFC 8707): the whole API, or only its part for agents.

/// What a token may be used at. Its address is the token's `aud`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// Every endpoint, the one for agents included.
    Api,
    /// The Model Context Protocol's endpoint alone.
    Mcp,
}

impl Resource {
    /// Every resource, the one that opens most first.
    pub const ALL: [Self; 2] = [Self::Api, Self::Mcp];

    /// Its address, in the API at this one.
    pub fn address(self, base_url: &str) -> String {
        let path = match self {
            Self::Api => "",
            Self::Mcp => "/mcp",
        };
        format!("{base_url}{path}")
    }

    /// Whether a token for this resource is good at that one.
    pub fn opens(self, other: Self) -> bool {
        self == Self::Api || self == other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_for_the_api_is_good_everywhere_and_one_for_agents_there_only() {
        assert!(Resource::ALL.iter().all(|resource| Resource::Api.opens(*resource)));
        assert!(Resource::Mcp.opens(Resource::Mcp) && !Resource::Mcp.opens(Resource::Api));
    }

    #[test]
    fn no_two_resources_have_one_address() {
        let [api, mcp] = Resource::ALL.map(|resource| resource.address("https://api.example.com"));
        assert_eq!((api.as_str(), mcp.as_str()), ("https://api.example.com", "https://api.example.com/mcp"));
    }
}
