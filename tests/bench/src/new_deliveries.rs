//! Publishing new deliveries for one invocation after another. They must be new: for a first attempt, the dispatcher
//! reads the event before claiming it, and inserts the delivery's head. Any other claim updates the head, without
//! waiting for the event.

use std::error::Error;

use tokio::process::Child;

use crate::{announcements::Announcements, bundle::Bundle, function::Subject, runtime_api::RuntimeApi};

/// A publisher that runs alongside the measured function. It calls the table directly and has its own queue, so its
/// calls are not counted.
pub struct NewDeliveries {
    publication: Subject,
    queue: Announcements,
    api: RuntimeApi,
    _process: Child,
}

impl NewDeliveries {
    /// Starts a publisher that repeats this publish request.
    pub async fn of(publication: &Subject, bundle: &Bundle) -> Result<Self, Box<dyn Error>> {
        let queue = Announcements::start().await?;
        let mut variables = queue.variables().to_vec();
        variables.push(("AWS_ENDPOINT_URL_SQS", format!("http://{}", queue.address)));
        let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let (api, _process) = publication.spawn(bundle, &variables).await?;
        Ok(Self { publication: publication.clone(), queue, api, _process })
    }

    /// Publishes `size` events; returns their messages as an invocation's event.
    pub async fn batch(&mut self, size: usize) -> Result<String, Box<dyn Error>> {
        for _ in 0..size {
            self.publication.invoke(&mut self.api).await?;
        }
        Ok(self.queue.batch(size)?)
    }
}
