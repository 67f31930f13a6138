//! A server of another webhook sender that runs beside the bundle, to be measured in the same run: Svix.
//! <https://api.svix.com/docs>

use std::{env, error::Error, time::Duration};

use serde_json::{Value, json};

use crate::{
    load::Target,
    process::{computed_in_all, named},
    usage::Computed,
};

/// Its own program, and those that it stores and queues in.
const SENDER: &str = "svix-server";
const PROGRAMS: [&str; 3] = [SENDER, "postgres", "redis-server"];

pub struct Peer {
    address: String,
    token: String,
    http: reqwest::Client,
}

impl Peer {
    /// How it is called in tables.
    pub const NAME: &str = "Svix";

    /// The server that `PEER` names by its address, with a token of `PEER_TOKEN`; none where the first is not set.
    pub fn named() -> Result<Option<Self>, Box<dyn Error>> {
        let Some(address) = variable("PEER") else { return Ok(None) };
        let token = variable("PEER_TOKEN").ok_or("PEER is set and PEER_TOKEN is not: `svix-server jwt generate`")?;
        let address = address.trim_end_matches('/').to_owned();
        Ok(Some(Self { address, token, http: reqwest::Client::new() }))
    }

    /// Makes an application with endpoints that get all of its messages.
    pub async fn subscribe(&self, application: &str, endpoints: &[String]) -> Result<(), Box<dyn Error>> {
        let new = json!({ "name": application, "uid": application });
        self.post("app/?get_if_exists=true", &new).await?;
        for url in endpoints {
            self.post(&format!("app/{application}/endpoint/"), &json!({ "url": url })).await?;
        }
        Ok(())
    }

    /// Where messages of an application are published.
    pub fn target(&self, application: &str) -> Target {
        Target {
            address: self.address.clone(),
            path: format!("/api/v1/app/{application}/msg/"),
            token: self.token.clone(),
            members: ["eventType", "payload"],
        }
    }

    /// What its processes computed so far.
    pub fn computed(&self) -> Result<Computed, Box<dyn Error>> {
        let sum = |programs: &[&str]| -> Result<Duration, Box<dyn Error>> {
            Ok(named(programs)?.into_iter().filter_map(|process| computed_in_all(process).ok()).sum())
        };
        Ok(Computed { all: sum(&PROGRAMS)?, sender: sum(&[SENDER])? })
    }

    async fn post(&self, path: &str, body: &Value) -> Result<(), Box<dyn Error>> {
        let request = self.http.post(format!("{}/api/v1/{path}", self.address)).bearer_auth(&self.token).json(body);
        let answer = request.send().await?;
        let status = answer.status();
        if !status.is_success() {
            return Err(format!("{path}: {status} {}", answer.text().await?).into());
        }
        Ok(())
    }
}

/// A choice of who measures; none where it is empty.
#[expect(clippy::disallowed_methods, reason = "a choice of who measures, as the arguments are")]
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}
