//! Problems: each kind has a page at its URL. The harness checks the format of every Problem that a test receives, and
//! that openapi.yaml declares its kind for the response.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::Value;

use crate::harness::Suite;

#[contract_test]
async fn every_kind_of_problem_has_a_page(suite: Arc<Suite>) {
    let mut kinds = suite.contract.problem_kinds();
    assert!(kinds.len() >= 15, "openapi.yaml names only {kinds:?}");
    // The introduction lists additional kinds, for future operations.
    let introduction = suite.contract.document["info"]["description"].as_str().unwrap_or_default();
    let listed = introduction.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let listed: Vec<String> = listed.map(str::to_owned).collect();
    assert!(kinds.iter().all(|kind| listed.contains(kind)), "the introduction lists {listed:?}, not all of {kinds:?}");
    kinds.extend(listed);
    for kind in kinds {
        let answer = suite.api.get(format!("/problems/{kind}")).expect(200).await;
        assert!(answer.header("content-type").starts_with("text/html"), "{}", answer.exchange);
        let page = answer.text();
        assert!(
            page.to_ascii_lowercase().starts_with("<!doctype html>") && page.contains(&kind),
            "{}",
            answer.exchange
        );
    }
}

#[contract_test]
async fn a_page_shows_an_example_and_leads_to_the_operations_and_back(suite: Arc<Suite>) {
    let base = suite.api.base_url();
    let reference = suite.api.get("/").expect(200).await.text();
    for kind in suite.contract.problem_kinds() {
        let page = suite.api.get(format!("/problems/{kind}")).expect(200).await.text();
        let (words, rest) = page.split_once("<pre><code>").expect("an example");
        let (example, links) = rest.split_once("</code></pre>").expect("it ends");
        // The example is identical to the Problem that the service sends, including the backticks.
        assert!(!words.contains('`') && !links.contains('`') && !page.contains("waypost.example"), "{page}");
        let example = example.replace("&quot;", "\"").replace("&#39;", "'").replace("&lt;", "<");
        let example: Value =
            serde_json::from_str(&example.replace("&gt;", ">").replace("&amp;", "&")).expect("it is JSON");
        assert_eq!(example["type"], format!("{base}/problems/{kind}"));
        for (start, what) in [("/#", "operation"), ("/problems\"", "list"), ("/\"", "reference")] {
            assert!(page.contains(&format!("<a href=\"{base}{start}")), "{kind} leads to no {what}: {page}");
        }
        for rest in page.split(&format!("<a href=\"{base}/#")).skip(1) {
            let operation = rest.split('"').next().unwrap_or_default();
            assert!(reference.contains(&format!(" id=\"{operation}\"")), "{kind} leads to {operation}");
        }
    }
}

#[contract_test]
async fn the_list_leads_to_every_page(suite: Arc<Suite>) {
    let list = suite.api.get("/problems").expect(200).await.text();
    let base = suite.api.base_url();
    for kind in suite.contract.problem_kinds() {
        assert!(list.contains(&format!("<a href=\"{base}/problems/{kind}\">")), "{kind}");
    }
}

#[contract_test]
async fn a_kind_that_does_not_exist_has_none(suite: Arc<Suite>) {
    for kind in ["nothing", "NOT-FOUND", "not-found.html", "%3Cscript%3E", "..%2F..%2Fetc%2Fpasswd"] {
        suite.api.get(format!("/problems/{kind}")).refused(404, "not-found").await;
    }
}

#[contract_test]
async fn the_type_of_a_problem_leads_to_its_page(suite: Arc<Suite>) {
    let problem: Value = suite.api.get("/nowhere").refused(404, "not-found").await;
    let address = problem["type"].as_str().expect("openapi.yaml says so");
    let path = address.strip_prefix(suite.api.base_url()).expect("the page is at the service's address");
    let page = suite.api.get(path).expect(200).await.text();
    let title = problem["title"].as_str().expect("openapi.yaml says so");
    assert!(page.contains(title), "the page does not say {title}");
}

/// The harness checks the headers of every page that a test receives; this test checks that openapi.yaml declares them
/// for every page.
#[contract_test]
async fn every_page_forbids_frames(suite: Arc<Suite>) {
    let document = &suite.contract.document;
    let mut pages = Vec::new();
    for operation in suite.contract.operations() {
        let declared = &document["paths"][&operation.path][operation.method.to_lowercase()]["responses"];
        for (status, response) in declared.as_object().into_iter().flatten() {
            let response = suite.contract.resolved(response);
            if response.pointer("/content/text~1html").is_some() {
                for header in ["Content-Security-Policy", "Referrer-Policy", "X-Content-Type-Options"] {
                    assert!(response["headers"].get(header).is_some(), "{} {status} lacks {header}", operation.id);
                }
                // Errors are pages only for pages and for unknown routes.
                if status == "200" {
                    pages.push(operation.id.clone());
                }
            }
        }
    }
    pages.sort();
    let expected = [
        "panel",
        "panelPage",
        "problemList",
        "problemPage",
        "providerOutcome",
        "providerStart",
        "receivingGuide",
        "reference",
    ];
    assert_eq!(pages, expected, "a new page needs a test that opens it");
    for (header, says) in
        [("Content-Security-Policy", "frame-ancestors 'none'"), ("Panel-Policy", "frame-ancestors ('none'|https")]
    {
        let policy = &document["components"]["headers"][header]["schema"]["pattern"];
        assert!(policy.as_str().is_some_and(|policy| policy.contains(says)), "{policy}");
    }
}
