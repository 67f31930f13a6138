//! Connections to payment providers: a simulated provider, the use cases in a sandbox, and the people who connect.

mod people;
mod played;
mod schedule;
mod use_cases;

use std::time::Duration;

use fastrand::Rng;
use serde_json::{Value, json};

pub use people::{Records, name};
pub use played::{Grant, Issue, Played, serve};
pub use use_cases::UseCases;

use crate::{draws::Draws, plan::TENANTS};

/// The port of the providers. No connection is made.
pub const PORT: u16 = 8001;

/// A simulated provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Provider {
    /// Each refresh issues a new refresh token, and the previous token becomes invalid (RFC 9700 §4.14.2).
    Rotating,
    /// The refresh token remains valid.
    Steady,
}

impl Provider {
    /// All providers.
    pub const ALL: [Self; 2] = [Self::Rotating, Self::Steady];

    /// The name of the provider.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rotating => "rotating",
            Self::Steady => "steady",
        }
    }

    /// The service's secret for the provider, which contains the provider's description.
    pub fn secret(self) -> Value {
        let address = |path: &str| format!("http://127.0.0.1:{PORT}/{}/{path}", self.name());
        json!({
            "clientId": "waypost", "clientSecret": "hunter2", "clientAuthentication": "basic", "scope": "pay",
            "pkce": self == Self::Rotating, "authorizeUrl": address("authorize"), "tokenUrl": address("token"),
            "revokeUrl": address("revoke"),
        })
    }
}

/// How a provider reacts to requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mood {
    /// Responds after this many milliseconds.
    Answers(u64),
    /// Sends its response twice.
    Twice,
    /// Grants access, but includes an error code in the response.
    GrantsWithError,
    /// Does the work, but responds after the service has given up.
    TooLate,
    /// Does the work, then breaks the connection.
    BreaksAfter,
    /// Does the work, then sends half of the response.
    Half,
    /// Does the work, but responds with 500.
    FailsAfter,
    /// Does nothing, and responds with 500.
    Fails,
    /// Does nothing, but responds with 200 and an error code.
    ErrorWithSuccess,
    /// Does nothing, and asks for a pause of this many seconds.
    Busy(u64),
    /// Does nothing, and rejects the service as a client.
    WrongClient,
    /// Does nothing, and never responds.
    Silent,
}

impl Mood {
    fn draw(rng: &mut Rng) -> Self {
        match rng.u8(0..20) {
            0..=6 => Self::Answers(rng.u64(1..100)),
            7..=8 => Self::Answers(rng.u64(500..4_000)),
            9 => Self::Twice,
            10 => Self::GrantsWithError,
            11 => Self::TooLate,
            12..=13 => Self::BreaksAfter,
            14 => Self::Half,
            15 => Self::FailsAfter,
            16 => Self::Fails,
            17 => Self::ErrorWithSuccess,
            18 => Self::Busy(rng.u64(1..90)),
            _ => [Self::WrongClient, Self::Silent][rng.usize(0..2)],
        }
    }

    /// Whether the provider carries out requests, even if its response is lost.
    pub const fn works(self) -> bool {
        !matches!(self, Self::Fails | Self::ErrorWithSuccess | Self::Busy(_) | Self::WrongClient | Self::Silent)
    }
}

/// The action in a step about payment providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// A tenant requests a link, with an idempotency key if there is a number, and a person follows it.
    Connect(usize, Provider, Option<u8>),
    /// A tenant disconnects from a provider.
    Disconnect(usize, Provider),
    /// The account's owner withdraws the latest permission at the provider.
    Withdraw(usize, Provider),
    /// A provider changes its reaction.
    React(Provider, Mood),
    /// From now on, a provider's tokens last this long.
    Shorten(Provider, Duration),
}

/// A history's steps about payment providers; half of the histories have none.
pub fn plan(draws: Draws, length: Duration) -> Vec<(Duration, Action)> {
    let rng = &mut draws.about(&"plan of providers");
    if rng.bool() {
        return Vec::new();
    }
    let weights = [12, rng.u32(0..6), rng.u32(0..3), rng.u32(0..12), rng.u32(0..3)];
    let step = |rng: &mut Rng| {
        let at = length.mul_f64(rng.f64());
        let tenant = rng.usize(0..TENANTS);
        let provider = Provider::ALL[rng.usize(0..Provider::ALL.len())];
        let action = match crate::plan::choose(&weights, rng) {
            0 => Action::Connect(tenant, provider, rng.bool().then(|| rng.u8(0..6))),
            1 => Action::Disconnect(tenant, provider),
            2 => Action::Withdraw(tenant, provider),
            3 => Action::React(provider, Mood::draw(rng)),
            _ => Action::Shorten(provider, Duration::from_secs(rng.u64(60..2_400))),
        };
        (at, action)
    };
    (0..rng.usize(10..40)).map(|_| step(rng)).collect()
}
