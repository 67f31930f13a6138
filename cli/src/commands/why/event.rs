//! The explanation of an event: its deliveries, and why other webhooks got none.

use serde::Serialize;
use serde_json::value::RawValue;

use super::{
    MOST, all_webhooks, explanations,
    missed::{Missed, Reason, missed},
    position,
    published::Event,
    shown::named,
    whole_deliveries,
};
use crate::{
    failure::Failure,
    machine,
    output::{Output, short_time, visible_line},
    service::{Call, Service},
};

/// The maximum number of webhooks listed as having no delivery.
const MOST_MISSED: usize = 5;

/// An explanation for programs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Explained<'a> {
    /// The event, exactly as the service shows it.
    event: Box<RawValue>,
    /// The event's deliveries with their attempts and `advice`, exactly as the service shows them.
    deliveries: Vec<Box<RawValue>>,
    without_delivery: Vec<MissedMember<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MissedMember<'a> {
    webhook_identifier: &'a str,
    name: &'a str,
    reason: Reason,
    message: String,
}

/// Prints the explanation of an event.
pub async fn explain(service: &Service, id: &str, output: Output) -> Result<(), Failure> {
    let text = service.text(Call::get(&["webhook", "event", id])).await?;
    let event: Event = service.read(&text)?;
    let mut sorted: Vec<_> = event.deliveries.iter().collect();
    sorted.sort_by_key(|delivery| position(&delivery.status));
    let ids = sorted.iter().take(MOST).map(|delivery| delivery.id.clone());
    let deliveries = whole_deliveries(service, ids.collect()).await?;
    let webhooks = all_webhooks(service).await?;
    let missed = if event.is_test() { Vec::new() } else { missed(service, &event, &webhooks).await };
    if output.json {
        let exact = deliveries.iter().map(|text| service.read(text)).collect::<Result<Vec<Box<RawValue>>, _>>()?;
        let without_delivery = missed.iter().map(|missed| MissedMember {
            webhook_identifier: &missed.webhook.id,
            name: &missed.webhook.name,
            reason: missed.reason,
            message: missed.sentence(&event),
        });
        let without_delivery = without_delivery.collect();
        let explained = Explained { event: service.read(&text)?, deliveries: exact, without_delivery };
        return Ok(output.write(explained, "")?);
    }
    if deliveries.is_empty() {
        return Ok(output.text(undelivered(&event, &missed, machine::columns()))?);
    }
    let published = named("published", &short_time(&event.timestamp.to_string()), None);
    let explanations = explanations(service, &deliveries, &webhooks)?;
    let others = listed(&event, &missed).map(|listed| format!("\n\n{listed}")).unwrap_or_default();
    output.text(format!("{}\n{published}\n\n{explanations}{others}", event.title()))?;
    if sorted.len() > MOST {
        let many = sorted.len();
        output.remark(format!("Only {MOST} of its {many} deliveries are explained, failed and waiting ones first."));
    }
    Ok(())
}

/// The webhooks without a delivery, each in a line with the reason; `None` if there are none.
fn listed(event: &Event, missed: &[Missed<'_>]) -> Option<String> {
    let line = |missed: &Missed<'_>| {
        let [name, id] = [&missed.webhook.name, &missed.webhook.id].map(|text| visible_line(text));
        format!("  {name} ({id}): {}", missed.sentence(event))
    };
    let more = missed.len().saturating_sub(MOST_MISSED);
    let more = (more > 0).then(|| format!("  and {more} more"));
    let lines: Vec<_> = missed.iter().take(MOST_MISSED).map(line).chain(more).collect();
    (!lines.is_empty()).then(|| format!("Webhooks without a delivery of this event:\n{}", lines.join("\n")))
}

/// The explanation of an event without deliveries.
fn undelivered(event: &Event, missed: &[Missed<'_>], width: Option<usize>) -> String {
    let mut happened = "Not delivered: no webhook matched it when it was published.".to_owned();
    if missed.is_empty() {
        happened.push_str(" There is no webhook now.");
    }
    let remedy = if event.is_erased() {
        "None: the event's content was erased, so it cannot be replayed."
    } else {
        "Correct, enable or create the webhook, and replay the event. It is then delivered if it matches."
    };
    let mut parts = vec![
        event.title(),
        named("published", &short_time(&event.timestamp.to_string()), None),
        named("happened", &happened, width),
        named("remedy", remedy, width),
    ];
    parts.extend(listed(event, missed));
    if !event.is_erased() {
        parts.push(format!("Next:\n  {}", next_commands(event, missed).join("\n  ")));
    }
    parts.join("\n")
}

/// The commands that deliver the event after all. They name the webhook if there is only one.
fn next_commands(event: &Event, missed: &[Missed<'_>]) -> [String; 2] {
    let id = match missed {
        [only] => visible_line(&only.webhook.id),
        _ => "ID".to_owned(),
    };
    let first = match missed {
        [] => {
            format!("waypost webhooks create --name NAME --url https://ADDRESS --types {}", visible_line(&event.kind))
        }
        [Missed { reason: Reason::Disabled, .. }] => format!("waypost webhooks change {id} --enable"),
        _ => format!("waypost webhooks show {id}"),
    };
    let replay = format!("waypost replay {id} --from {:.3} --until {:.3}", event.timestamp, event.next_millisecond());
    [first, replay]
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;
    use crate::commands::why::shown::Webhook;

    fn event(members: &str) -> Event {
        let event = format!(
            r#"{{"id":"evt_1","type":"booking.created","subject":"B-1","timestamp":"2026-11-20T09:45:00.120Z","data":{{}},
            "deliveries":[]{members}}}"#
        );
        serde_json::from_str(&event).expect("an event")
    }

    fn webhook(id: &str) -> Webhook {
        let webhook = format!(
            r#"{{"id":"{id}","name":"Booking\u001b sync","enabled":true,"eventList":[],
            "createdDate":"2026-11-01T00:00:00.000Z","lastUpdate":"2026-11-01T00:00:00.000Z"}}"#
        );
        serde_json::from_str(&webhook).expect("a webhook")
    }

    fn explained(event: &Event, missed: &[Missed<'_>]) -> String {
        strip_str(&undelivered(event, missed, None)).to_string()
    }

    #[test]
    fn an_event_without_deliveries_is_explained_by_its_webhooks() {
        let webhook = webhook("whk_1");
        let missed = [Missed { webhook: &webhook, reason: Reason::Filtered }];
        let expected = "\
evt_1  booking.created  B-1
published 2026-11-20 09:45:00Z
happened  Not delivered: no webhook matched it when it was published.
remedy    Correct, enable or create the webhook, and replay the event. It is then delivered if it matches.
Webhooks without a delivery of this event:
  Booking\u{fffd} sync (whk_1): The event's data does not match its filter.
Next:
  waypost webhooks show whk_1
  waypost replay whk_1 --from 2026-11-20T09:45:00.120Z --until 2026-11-20T09:45:00.121Z";
        assert_eq!(explained(&event(""), &missed), expected);
    }

    #[test]
    fn the_next_command_depends_on_the_reason() {
        let webhook = webhook("whk_1");
        let disabled = [Missed { webhook: &webhook, reason: Reason::Disabled }];
        let text = explained(&event(""), &disabled);
        assert!(text.contains("\n  waypost webhooks change whk_1 --enable\n"), "{text}");
        let none = explained(&event(""), &[]);
        assert!(none.contains("There is no webhook now.") && none.contains("waypost webhooks create"), "{none}");
        let erased = explained(&event(r#","erasedDate":"2026-11-21T00:00:00.000Z""#), &disabled);
        assert!(erased.contains("cannot be replayed") && !erased.contains("Next:"), "{erased}");
    }

    #[test]
    fn at_most_five_webhooks_are_listed() {
        let webhooks = ["whk_1", "whk_2", "whk_3", "whk_4", "whk_5", "whk_6", "whk_7"].map(webhook);
        let missed: Vec<_> = webhooks.iter().map(|webhook| Missed { webhook, reason: Reason::NotSubscribed }).collect();
        let text = explained(&event(""), &missed);
        assert!(text.contains("whk_5") && !text.contains("whk_6") && text.contains("\n  and 2 more\n"), "{text}");
        assert!(text.contains("waypost replay ID --from"), "{text}");
    }
}
