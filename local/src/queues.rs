//! The template's queues.

use std::collections::BTreeMap;

use queue::{Queues, Refusal};
use serde_json::json;
use template::Queue;

/// A template's queue that cannot be created.
#[derive(Debug, thiserror::Error)]
#[error("template.yaml: the queue {queue} cannot be created here")]
pub struct QueueError {
    queue: String,
    source: Refusal,
}

/// Creates the queues that the template declares.
pub fn create(queues: &Queues, declared: &[Queue]) -> Result<(), QueueError> {
    let mut declared: Vec<_> = declared.iter().collect();
    // A dead-letter queue must exist before any queue that names it.
    declared.sort_by_key(|queue| queue.dead_letter.is_some());
    declared.into_iter().try_for_each(|queue| {
        let name = &queue.logical_id;
        queues.create(name, &attributes(queues, queue)).map_err(|source| QueueError { queue: name.clone(), source })
    })
}

fn attributes(queues: &Queues, queue: &Queue) -> BTreeMap<String, String> {
    let plain = queue.attributes().map(|(name, value)| (name.to_owned(), value));
    let redrive = queue.dead_letter.iter().map(|(letters, receives)| {
        let policy = json!({ "deadLetterTargetArn": queues.arn(letters), "maxReceiveCount": receives });
        ("RedrivePolicy".to_owned(), policy.to_string())
    });
    plain.chain(redrive).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use base::{SystemClock, SystemRandom};
    use template::Template;

    use super::*;

    #[test]
    fn every_queue_of_the_template_is_made_with_its_attributes() {
        let template = Template::parse(include_str!("../../template.yaml")).expect("the project's template");
        let queues = Queues::new("http://127.0.0.2:1", "r", "1", Arc::new(SystemClock), Arc::new(SystemRandom));
        create(&queues, template.queues()).expect("made");
        assert_eq!(queues.names().len(), template.queues().len());
        let attributes = queues.attributes("DeliveryQueue").expect("made");
        assert_eq!(attributes["VisibilityTimeout"], "900");
        assert_eq!(
            attributes["RedrivePolicy"],
            r#"{"deadLetterTargetArn":"arn:aws:sqs:r:1:DeliveryDeadLetters","maxReceiveCount":5}"#
        );
    }
}
