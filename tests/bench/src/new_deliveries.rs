//! New deliveries, one invocation's after another's: an attempt that follows its publication is not claimed, and one of an
//! older message is.

use std::error::Error;

use tokio::process::Child;

use crate::{announcements::Announcements, function::Subject, runtime_api::RuntimeApi, stand::Stand};

/// A publisher beside what is measured: near its table, and with a queue of its own, so that none of its calls is counted.
pub struct NewDeliveries {
    publication: Subject,
    queue: Announcements,
    api: RuntimeApi,
    _process: Child,
}

impl NewDeliveries {
    /// Those of this publication.
    pub async fn of(publication: &Subject, stand: &Stand) -> Result<Self, Box<dyn Error>> {
        let queue = Announcements::start().await?;
        let mut variables = queue.variables().to_vec();
        variables.push(("AWS_ENDPOINT_URL_SQS", format!("http://{}", queue.address)));
        let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let (api, _process) = publication.spawn(stand, &variables).await?;
        Ok(Self { publication: publication.clone(), queue, api, _process })
    }

    /// Publishes so many events; their messages as the event of an invocation.
    pub async fn batch(&mut self, size: usize) -> Result<String, Box<dyn Error>> {
        for _ in 0..size {
            self.publication.invoke(&mut self.api).await?;
        }
        Ok(self.queue.batch(size)?)
    }
}
