//! The resources that tokens are issued for (RFC 8707): the whole API, or only its part for agents.

/// A resource that a token is issued for. Its address is the token's `aud`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// Every endpoint, including the one for agents.
    Api,
    /// Only the endpoint of the Model Context Protocol.
    Mcp,
}

impl Resource {
    /// All resources, the most powerful first.
    pub const ALL: [Self; 2] = [Self::Api, Self::Mcp];

    /// The address of the resource, for the API at `base_url`.
    pub fn address(self, base_url: &str) -> String {
        let path = match self {
            Self::Api => "",
            Self::Mcp => "/mcp",
        };
        format!("{base_url}{path}")
    }

    /// Whether a token for this resource is accepted at the other one.
    pub fn opens(self, other: Self) -> bool {
        self == Self::Api || self == other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_api_token_is_valid_everywhere_and_an_agent_token_only_there() {
        assert!(Resource::ALL.iter().all(|resource| Resource::Api.opens(*resource)));
        assert!(Resource::Mcp.opens(Resource::Mcp) && !Resource::Mcp.opens(Resource::Api));
    }

    #[test]
    fn no_two_resources_have_one_address() {
        let [api, mcp] = Resource::ALL.map(|resource| resource.address("https://api.example.com"));
        assert_eq!((api.as_str(), mcp.as_str()), ("https://api.example.com", "https://api.example.com/mcp"));
    }
}
