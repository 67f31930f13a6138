//! The state of the simulated providers: codes, grants and requests.

use std::{
    collections::{BTreeSet, HashMap},
    time::Instant,
};

use aws_lc_rs::rand;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};

use super::{
    failure::Fate,
    log::{Entry, Kind, RequestOutcome},
    setup::{Rotation, Setup},
};

/// A code that the person's consent created.
pub(crate) struct Code {
    /// The provider's name.
    pub(crate) provider: String,
    /// The request's redirect URI.
    pub(crate) redirect_uri: String,
    /// The code challenge.
    pub(crate) challenge: Option<String>,
    /// The granted scopes.
    pub(crate) scope: String,
    /// The person's account.
    pub(crate) account: String,
    /// The name of the fate.
    pub(crate) fate: String,
    /// The lifetime of the first access token, if it differs from the default.
    pub(crate) first_lifetime: Option<u32>,
    /// The grant, once the code has been exchanged.
    pub(crate) grant: Option<usize>,
}

/// Access that was granted, with its tokens.
pub(crate) struct Grant {
    pub(crate) provider: String,
    pub(crate) account: String,
    pub(crate) scope: String,
    pub(crate) fate: String,
    /// The valid refresh tokens, oldest first.
    refresh_tokens: Vec<String>,
    access_token: String,
    /// Whether the grant was revoked or has ended in another way.
    pub(crate) ended: bool,
    /// Whether the failure that was to happen once has happened.
    pub(crate) failed_once: bool,
}

/// A response's tokens.
pub(crate) struct Tokens {
    pub(crate) access: String,
    pub(crate) refresh: Option<String>,
}

/// The state of all providers.
#[derive(Default)]
pub(crate) struct Book {
    pub(crate) codes: HashMap<String, Code>,
    pub(crate) grants: Vec<Grant>,
    pub(crate) log: Vec<Entry>,
    /// The grant of each token that was issued.
    tokens: HashMap<String, usize>,
    /// The assertions that have been used; each can be used only once.
    assertions: BTreeSet<String>,
    /// The values that only the client and the provider may see.
    pub(crate) secrets: BTreeSet<String>,
    /// The requested paths that belong to no provider.
    pub(crate) strays: Vec<String>,
    /// The paths of requests that carried a trace.
    pub(crate) traced: Vec<String>,
}

impl Book {
    /// Records a request and its outcome.
    pub(crate) fn note(
        &mut self,
        setup: &Setup,
        kind: Kind,
        presented: &str,
        account: Option<&str>,
        outcome: RequestOutcome,
    ) {
        self.log.push(Entry {
            provider: setup.name.clone(),
            kind,
            presented: presented.to_owned(),
            account: account.map(str::to_owned),
            outcome,
            at: Instant::now(),
        });
    }

    /// A random secret that begins with the name of its fate.
    pub(crate) fn secret(&mut self, kind: &str, fate: &str) -> String {
        let secret = format!("{fate}.{kind}.{}", random_text());
        self.secrets.insert(secret.clone());
        secret
    }

    /// Whether this is the first use of an assertion.
    pub(crate) fn first_use(&mut self, assertion: String) -> bool {
        self.assertions.insert(assertion)
    }

    /// The grant that a token belongs to.
    pub(crate) fn grant_of(&self, token: &str) -> Option<usize> {
        self.tokens.get(token).copied()
    }

    /// An account's latest grant, even if the grant has ended.
    pub(crate) fn grant_of_account(&self, provider: &str, account: &str) -> Option<usize> {
        self.grants.iter().rposition(|grant| grant.provider == provider && grant.account == account)
    }

    /// Creates the grant for a code, with the first tokens.
    pub(crate) fn grant(&mut self, setup: &Setup, code: &str) -> Option<(usize, Tokens)> {
        let Code { scope, account, fate, .. } = self.codes.get(code)?;
        let scope = scope.clone();
        let account = account.clone();
        let fate = fate.clone();
        let access = self.secret("access", &fate);
        let refresh = (Fate::of(&fate) != Some(Fate::NoRefresh)).then(|| self.secret("refresh", &fate));
        let number = self.grants.len();
        for token in refresh.iter().chain([&access]) {
            self.tokens.insert(token.clone(), number);
        }
        self.grants.push(Grant {
            provider: setup.name.clone(),
            account,
            scope,
            fate,
            refresh_tokens: refresh.iter().cloned().collect(),
            access_token: access.clone(),
            ended: false,
            failed_once: false,
        });
        self.codes.get_mut(code)?.grant = Some(number);
        Some((number, Tokens { access, refresh }))
    }

    /// New tokens in exchange for a refresh token, or the reason for refusing it.
    pub(crate) fn refresh(&mut self, setup: &Setup, number: usize, token: &str) -> Result<Tokens, &'static str> {
        let grant = &mut self.grants[number];
        if grant.ended {
            return Err("the grant has ended");
        }
        let Some(position) = grant.refresh_tokens.iter().position(|known| known == token) else {
            if setup.rotation == Rotation::Strict {
                grant.ended = true;
            }
            return Err("the refresh token is not valid");
        };
        let fate = grant.fate.clone();
        let access = self.secret("access", &fate);
        self.tokens.insert(access.clone(), number);
        let refresh = match setup.rotation {
            Rotation::Same => Some(token.to_owned()),
            Rotation::Unnamed => None,
            Rotation::Graceful | Rotation::Strict => {
                let next = self.secret("refresh", &fate);
                self.tokens.insert(next.clone(), number);
                let tokens = &mut self.grants[number].refresh_tokens;
                // Using a token shows that the client has it, so earlier tokens end.
                tokens.drain(..position + usize::from(setup.rotation == Rotation::Strict));
                tokens.push(next.clone());
                Some(next)
            }
        };
        self.grants[number].access_token.clone_from(&access);
        Ok(Tokens { access, refresh })
    }

    /// Whether this access token is valid.
    pub(crate) fn works(&self, access_token: &str) -> bool {
        self.grant_of(access_token).is_some_and(|number| {
            let grant = &self.grants[number];
            !grant.ended && grant.access_token == access_token
        })
    }
}

/// A random string.
pub(crate) fn random_text() -> String {
    let mut bytes = [0; 24];
    rand::fill(&mut bytes).expect("the system's generator gives bytes");
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::Authentication;

    /// A book with one grant, and that grant's refresh token.
    fn granted(rotation: Rotation) -> (Book, Setup, String) {
        let setup = Setup { rotation, ..Setup::new("some", "client", Authentication::AnySecret) };
        let mut book = Book::default();
        let code = Code {
            provider: setup.name.clone(),
            redirect_uri: String::new(),
            challenge: None,
            scope: String::new(),
            account: "account".to_owned(),
            fate: "ok".to_owned(),
            first_lifetime: None,
            grant: None,
        };
        book.codes.insert("code".to_owned(), code);
        let (_, tokens) = book.grant(&setup, "code").expect("the code is there");
        (book, setup, tokens.refresh.expect("there is a refresh token"))
    }

    #[test]
    fn with_a_grace_the_old_token_works_until_the_new_one_is_used() {
        let (mut book, setup, old) = granted(Rotation::Graceful);
        let lost = book.refresh(&setup, 0, &old).expect("refreshed").refresh.expect("rotated");
        let new = book.refresh(&setup, 0, &old).expect("the first answer was lost").refresh.expect("rotated");
        let newer = book.refresh(&setup, 0, &new).expect("refreshed").refresh.expect("rotated");
        for ended in [&old, &lost] {
            assert!(book.refresh(&setup, 0, ended).is_err());
        }
        assert!(book.refresh(&setup, 0, &newer).is_ok(), "an old token costs nothing");
    }

    #[test]
    fn without_a_grace_an_old_token_ends_the_grant() {
        let (mut book, setup, old) = granted(Rotation::Strict);
        let new = book.refresh(&setup, 0, &old).expect("refreshed").refresh.expect("rotated");
        assert!(book.refresh(&setup, 0, &old).is_err());
        assert!(book.refresh(&setup, 0, &new).is_err());
    }

    #[test]
    fn only_the_newest_access_token_works_and_none_when_the_grant_has_ended() {
        let (mut book, setup, refresh) = granted(Rotation::Same);
        let first = book.refresh(&setup, 0, &refresh).expect("refreshed").access;
        let second = book.refresh(&setup, 0, &refresh).expect("refreshed").access;
        assert!(!book.works(&first) && book.works(&second));
        book.grants[0].ended = true;
        assert!(!book.works(&second));
    }
}
