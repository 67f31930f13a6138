//! The cost of a million deliveries on AWS, calculated from the measurements and the list prices in us-east-1: events
//! of 1 KB, one webhook, delivered at once, stored for 90 days. A stack's fixed costs and outgoing traffic are not
//! included.

use crate::{
    lambda::{Figures, USUAL},
    stored::Stored,
};

const MILLION: f64 = 1e6;
const GIGABYTE: f64 = (1 << 30) as f64;

/// <https://aws.amazon.com/lambda/pricing/>: the price of a million requests, and of a second with one GB on arm64.
const LAMBDA_REQUESTS: f64 = 0.20;
const LAMBDA_GIGABYTE_SECOND: f64 = 0.000_013_333_4;
/// <https://aws.amazon.com/api-gateway/pricing/>: the price of a million requests to an HTTP API.
const API_REQUESTS: f64 = 1.00;
/// <https://aws.amazon.com/sqs/pricing/>: the price of a million requests, and the surcharge for message groups (fair
/// queues).
const QUEUE_REQUESTS: f64 = 0.40;
const QUEUE_GROUPS: f64 = 0.10;
/// <https://aws.amazon.com/dynamodb/pricing/on-demand/>: the price of a million units, and of a GB for a month: in the
/// table with its backup (point-in-time recovery, without indexes), and in an index.
const WRITES: f64 = 0.625;
const READS: f64 = 0.125;
const TABLE_MONTH: f64 = 0.25 + 0.20;
const INDEX_MONTH: f64 = 0.25;
const MONTHS: f64 = 3.0;
/// <https://aws.amazon.com/cloudwatch/pricing/>: the price of a GB of logs.
const LOGS: f64 = 0.50;

/// The line that Lambda itself logs for each invocation.
/// <https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-logformat.html>
const REPORT_LINE: &str = r#"{"time":"2026-11-20T09:45:00.123Z","type":"platform.report","record":{"requestId":"6d67d385-053d-4622-a56f-b25bcef23083","metrics":{"durationMs":10.123,"billedDurationMs":11,"memorySizeMB":512,"maxMemoryUsedMB":64},"status":"success"}}"#;
/// The line that the API logs for each request, in the template's format.
const ACCESS_LINE: &str = r#"{"requestId":"JKJaXmPLvHcESHA=","time":"20/Nov/2026:09:45:00 +0000","sourceIp":"203.0.113.10","method":"POST","path":"/api/managing-entity/demo-hotel/webhook/event","route":"POST /api/managing-entity/{managingEntityIdentifier}/webhook/event","status":"202","responseLength":"221","latencyMs":"14","functionLatencyMs":"12","error":"-"}"#;

/// The price of a service for a million deliveries, in dollars.
pub struct Price {
    pub service: &'static str,
    /// The price if each delivery has a separate invocation.
    pub alone: f64,
    /// The price if deliveries share invocations.
    pub shared: f64,
}

/// The prices of a publish request, of a single attempt, and of an invocation with a batch of `attempts` attempts.
pub fn of(publish: &Figures, alone: &Figures, batch: &Figures, attempts: usize, stored: Stored) -> Vec<Price> {
    let share = 1.0 / attempts as f64;
    // `cost` computes an invocation's price; the result covers both ways of delivering.
    let price = |service, cost: &dyn Fn(&Figures) -> f64| {
        let published = cost(publish);
        Price { service, alone: published + cost(alone), shared: published + share * cost(batch) }
    };
    let same = |service, cost| Price { service, alone: cost, shared: cost };
    let storage = (stored.table * TABLE_MONTH + stored.indexes * INDEX_MONTH) * MONTHS * MILLION / GIGABYTE;
    let received = 2.0 * QUEUE_REQUESTS;
    vec![
        price("DynamoDB: writes", &|figures| figures.writes * WRITES),
        price("DynamoDB: reads", &|figures| figures.reads * READS),
        same("DynamoDB: 90 days of storage, with backup", storage),
        same("API Gateway", API_REQUESTS),
        price("Lambda: requests", &|_| LAMBDA_REQUESTS),
        price("Lambda: time", &|figures| {
            let gigabytes = figures.memory as f64 / 1024.0;
            figures.wall[USUAL].as_secs_f64() * gigabytes * LAMBDA_GIGABYTE_SECOND * MILLION
        }),
        // Lambda receives all of an invocation's messages with one request and deletes them with another.
        Price {
            service: "SQS",
            alone: publish.calls[1] * (QUEUE_REQUESTS + QUEUE_GROUPS) + received,
            shared: publish.calls[1] * (QUEUE_REQUESTS + QUEUE_GROUPS) + share * received,
        },
        price("CloudWatch: logs of functions", &|figures| {
            (figures.logged + REPORT_LINE.len() as f64) * LOGS * MILLION / GIGABYTE
        }),
        same("CloudWatch: logs of the API", ACCESS_LINE.len() as f64 * LOGS * MILLION / GIGABYTE),
    ]
}
