use super::outcomes::{FilterOutcomes, MAX_STEPS};
use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};

fn raw(json: impl ToString) -> Box<RawValue> {
    RawValue::from_string(json.to_string()).expect("JSON")
}

fn matches(filter: &str, data: &str) -> bool {
    let filter = EventFilter::read(filter).unwrap_or_else(|faults| panic!("{filter}: {faults:?}"));
    compared(&filter, &raw(data)) == FilterOutcome::Matches
}

fn compared(filter: &EventFilter, data: &RawValue) -> FilterOutcome {
    filter.compare(&EventData::read(data), &mut Steps(u32::MAX))
}

/// The outcomes of these filters for data, within this number of steps.
fn outcomes(steps: u32, filters: &[&EventFilter], data: &Value) -> Vec<FilterOutcome> {
    let body = json!({ "id": "evt_1", "data": data }).to_string();
    let outcomes = FilterOutcomes::within(Steps(steps), filters.iter().copied(), &body);
    filters.iter().map(|filter| outcomes.get(filter)).collect()
}

fn filter(json: &Value) -> EventFilter {
    EventFilter::read(&json.to_string()).expect("a filter")
}

/// The pointers of a filter's faults.
fn faults(filter: &str) -> Vec<String> {
    EventFilter::read(filter).expect_err(filter).into_iter().map(|fault| fault.pointer.as_str().to_owned()).collect()
}

#[test]
fn each_operator_accepts_and_refuses() {
    for (filter, accepted, refused) in [
        (
            r#"{"a":["x",1,true,null]}"#,
            &[r#""x""#, "1", "1.0", "true", "null"][..],
            &[r#""y""#, "2", "false", "{}"][..],
        ),
        (r#"{"a":[""]}"#, &[r#""""#], &["null", r#"" ""#]),
        (r#"{"a":[{"prefix":"B-"}]}"#, &[r#""B-1""#, r#""\u0042-""#], &[r#""b-1""#, "1"]),
        (r#"{"a":[{"suffix":".png"}]}"#, &[r#""x.png""#], &[r#""x.pngs""#]),
        (r#"{"a":[{"equals-ignore-case":"Überblick"}]}"#, &[r#""üBERBLICK""#], &[r#""Uberblick""#]),
        (r#"{"a":[{"anything-but":"x"}]}"#, &[r#""y""#, "1", "null", "true"], &[r#""x""#, "{}", "[]"]),
        (r#"{"a":[{"anything-but":["x",2]}]}"#, &[r#""y""#, "1"], &[r#""x""#, "2.00"]),
        (r#"{"a":[{"anything-but":{"prefix":"us-"}}]}"#, &[r#""eu-1""#, "1"], &[r#""us-1""#]),
        (r#"{"a":[{"anything-but":{"suffix":["a","b"]}}]}"#, &[r#""c""#], &[r#""xa""#, r#""xb""#]),
        (r#"{"a":[{"anything-but":{"equals-ignore-case":"x"}}]}"#, &[r#""y""#], &[r#""X""#]),
        (r#"{"a":[{"numeric":["<",5]}]}"#, &["4", "-1e9", "4.999"], &["5", "5.0", r#""5""#, r#""4 ""#]),
        (
            r#"{"a":[{"numeric":[">",0,"<=",10.50]}]}"#,
            &["0.1", "10.5", "10.500", r#""10.50""#],
            &["0", "10.51", r#""x""#],
        ),
        (r#"{"a":[{"numeric":["=",1e2]}]}"#, &["100", "100.0"], &["101"]),
        (r#"{"a":[{"numeric":[">=",1152921504606846977]}]}"#, &["1152921504606846977"], &["1152921504606846976"]),
        (r#"{"a":[{"exists":true}]}"#, &["null", "{}", "[]", "0"], &[]),
        (r#"{"a":[{"exists":false},"x"]}"#, &[r#""x""#], &["null", r#""y""#]),
    ] {
        for value in accepted {
            assert!(matches(filter, &format!(r#"{{"a":{value}}}"#)), "{filter} accepts {value}");
            assert!(
                matches(filter, &format!(r#"{{"b":0,"a":[[{value}],9999]}}"#)),
                "{filter} accepts an element {value}"
            );
        }
        for value in refused {
            assert!(!matches(filter, &format!(r#"{{"a":{value}}}"#)), "{filter} refuses {value}");
        }
        assert_eq!(matches(filter, "{}"), filter.contains(r#""exists":false"#), "{filter} without the member");
    }
}

#[test]
fn a_nested_pattern_holds_for_one_element_as_a_whole() {
    let filter = r#"{"rooms":{"type":["DBL"],"price":[{"numeric":[">",100]}]}}"#;
    assert!(matches(filter, r#"{"rooms":{"type":"DBL","price":120}}"#));
    assert!(matches(filter, r#"{"rooms":[{"type":"SGL","price":90},{"type":"DBL","price":120}]}"#));
    assert!(!matches(filter, r#"{"rooms":[{"type":"SGL","price":120},{"type":"DBL","price":90}]}"#));
    for other in [r#"{"rooms":[]}"#, r#"{"rooms":"DBL"}"#, "{}", r#"{"rooms":null}"#] {
        assert!(!matches(filter, other), "{other}");
    }
}

#[test]
fn a_member_is_missing_within_a_missing_object() {
    let filter = r#"{"guest":{"email":[{"exists":false}]}}"#;
    for data in ["{}", r#"{"guest":{}}"#, r#"{"guest":null}"#, r#"{"guest":[]}"#] {
        assert!(matches(filter, data), "{data}");
    }
    assert!(!matches(filter, r#"{"guest":{"email":"a@example.com"}}"#));
}

#[test]
fn members_are_joined_by_and_and_alternatives_by_or() {
    let filter = r#"{"currency":["EUR"],"$or":[{"total":[{"numeric":[">",1000]}]},{"guest":{"vip":[true]}}]}"#;
    for (data, matching) in [
        (r#"{"currency":"EUR","total":2000}"#, true),
        (r#"{"currency":"EUR","total":10,"guest":{"vip":true}}"#, true),
        (r#"{"currency":"EUR","total":10}"#, false),
        (r#"{"currency":"USD","total":2000,"guest":{"vip":true}}"#, false),
    ] {
        assert_eq!(matches(filter, data), matching, "{data}");
    }
}

#[test]
fn each_fault_is_named_with_its_pointer() {
    for (filter, pointers) in [
        ("[]", &[""][..]),
        ("{}", &[""]),
        ("null", &[""]),
        (r#""x""#, &[""]),
        (r#"{"a":"EUR"}"#, &["/a"]),
        (r#"{"a":[]}"#, &["/a"]),
        (r#"{"a":{}}"#, &["/a"]),
        (r#"{"a":[["x"]]}"#, &["/a/0"]),
        (r#"{"a":["x"],"a":["y"]}"#, &["/a"]),
        (r#"{"a":[{}]}"#, &["/a/0"]),
        (r#"{"a":[{"prefix":"x","suffix":"y"}]}"#, &["/a/0"]),
        (r#"{"a":["x",{"prefx":"y"}]}"#, &["/a/1/prefx"]),
        (r#"{"a":[{"wildcard":"*"}],"b":[{"cidr":"10.0.0.0/8"}]}"#, &["/a/0/wildcard", "/b/0/cidr"]),
        (r#"{"a":[{"prefix":1}],"b":[{"suffix":""}]}"#, &["/a/0/prefix", "/b/0/suffix"]),
        (r#"{"a":[{"exists":"yes"}]}"#, &["/a/0/exists"]),
        (r#"{"a":[{"anything-but":[]}]}"#, &["/a/0/anything-but"]),
        (r#"{"a":[{"anything-but":["x",["y"]]}]}"#, &["/a/0/anything-but/1"]),
        (r#"{"a":[{"anything-but":{"numeric":["<",1]}}]}"#, &["/a/0/anything-but/numeric"]),
        (r#"{"a":[{"anything-but":{"prefix":[1]}}]}"#, &["/a/0/anything-but/prefix/0"]),
        (r#"{"a":[{"numeric":[]}]}"#, &["/a/0/numeric"]),
        (r#"{"a":[{"numeric":["<"]}]}"#, &["/a/0/numeric"]),
        (r#"{"a":[{"numeric":["!=",1]}]}"#, &["/a/0/numeric"]),
        (r#"{"a":[{"numeric":["<","1"]}]}"#, &["/a/0/numeric"]),
        (r#"{"a":[{"numeric":["<",1,"<",2,"<",3]}]}"#, &["/a/0/numeric"]),
        (r#"{"a":["\ud800"]}"#, &["/a/0"]),
        (r#"{"$or":{}}"#, &["/$or"]),
        (r#"{"$or":[{"a":["x"]},{}]}"#, &["/$or/1"]),
        (r#"{"a":{"b":"x"},"c":[{"exists":1}]}"#, &["/a/b", "/c/0/exists"]),
    ] {
        assert_eq!(faults(filter), pointers, "{filter}");
    }
    assert_eq!(faults(&format!(r#"{{"a":[{}]}}"#, "1".repeat(65))), ["/a/0"]);
}

/// Go's and Java's encoders escape `<`, `>` and `=` in strings, and so do Terraform and Pulumi.
#[test]
fn the_operators_of_a_filter_may_be_escaped() {
    let filter = r#"{"a":[{"\u006eumeric":["\u003e",0,"\u003c\u003d",5]}],"b":[{"numeric":["\u003d",1]}]}"#;
    let filter = EventFilter::read(filter).expect("a filter");
    for (data, matches) in [(r#"{"a":5,"b":1}"#, true), (r#"{"a":0,"b":1}"#, false), (r#"{"a":6,"b":1}"#, false)] {
        assert_eq!(compared(&filter, &raw(data)) == FilterOutcome::Matches, matches, "{data}");
    }
}

#[test]
fn filters_are_limited_in_size_depth_and_values() {
    let nested = |depth: usize| format!("{}[1]{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
    assert!(EventFilter::read(&nested(pattern::MAX_DEPTH)).is_ok());
    assert_eq!(faults(&nested(pattern::MAX_DEPTH + 1)), ["/a".repeat(pattern::MAX_DEPTH)]);
    let values = |count: usize| json!({ "a": vec![1; count] }).to_string();
    assert!(EventFilter::read(&values(pattern::MAX_VALUES)).is_ok());
    assert_eq!(faults(&values(pattern::MAX_VALUES + 1)), [""]);
    let sized = |bytes: usize| format!(r#"{{ "a" : [ "{}" ] }}"#, "x".repeat(bytes - r#"{"a":[""]}"#.len()));
    assert_eq!(EventFilter::read(&sized(MAX_BYTES)).expect("fits").as_str().len(), MAX_BYTES);
    assert_eq!(faults(&sized(MAX_BYTES + 1)), [""]);
}

#[test]
fn an_unreadable_stored_filter_lets_every_event_pass() {
    for stored in [r#"{"a":[{"of_a_newer_release":1}]}"#, "{", ""] {
        let outcome = compared(&EventFilter(stored.to_owned()), &raw("{}"));
        assert_eq!((outcome, outcome.delivers()), (FilterOutcome::Matches, true), "{stored}");
    }
}

/// A hundred alternatives of a filter, none of which the number 1 satisfies.
fn dear(number: i64) -> EventFilter {
    let alternative = |at: i64| json!({ "a": [{ "numeric": ["<", -(number * 100 + at)] }] });
    filter(&json!({ "$or": (0..100).map(alternative).collect::<Vec<_>>() }))
}

#[test]
fn an_event_with_too_many_values_for_a_filter_is_delivered() {
    let one = filter(&json!({ "a": [2] }));
    let data = json!({ "a": vec![1; 1_000] });
    assert_eq!(outcomes(5_000, &[&one], &data), [FilterOutcome::Differs]);
    assert_eq!(outcomes(500, &[&one], &data), [FilterOutcome::TooManySteps]);
    assert!(FilterOutcome::TooManySteps.delivers() && !FilterOutcome::Differs.delivers());
}

#[test]
fn a_dear_filter_leaves_steps_to_others() {
    let data = json!({ "a": vec!["1"; 1_000], "b": 1 });
    let many: Vec<_> = (0..9).map(dear).collect();
    let cheap = filter(&json!({ "b": [2] }));
    let mut filters: Vec<_> = many.iter().collect();
    filters.push(&cheap);
    let outcomes = outcomes(100_000, &filters, &data);
    assert_eq!(outcomes[..9], [FilterOutcome::TooManySteps; 9]);
    assert_eq!(outcomes[9], FilterOutcome::Differs);
}

#[test]
fn equal_filters_are_compared_once() {
    let data = json!({ "a": vec![1; 1_000] });
    let one = filter(&json!({ "a": [2] }));
    assert_eq!(outcomes(5_000, &[&one.clone(); 200], &data), [FilterOutcome::Differs; 200]);
}

/// Two hundred filters with lists of ten values, and a large event that none of them matches.
#[test]
fn the_filters_of_two_hundred_webhooks_are_compared_within_the_limit() {
    let filters: Vec<_> = (0..200).map(|at| filter(&json!({ "rooms": { "type": vec![at + 2; 10] } }))).collect();
    let rooms: Vec<_> = (0..1_000).map(|room| json!({ "type": 1, "room": room })).collect();
    let outcomes = outcomes(MAX_STEPS, &filters.iter().collect::<Vec<_>>(), &json!({ "rooms": rooms }));
    assert_eq!(outcomes, [FilterOutcome::Differs; 200]);
}

/// A value that a pattern can name.
fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1_000_000_i64..1_000_000).prop_map(|cents| Value::from(cents as f64 / 100.0)),
        "[a-c\\\\\"é ]{0,3}".prop_map(Value::from),
    ]
}

/// Data with arrays and objects of up to three levels, whose members do not look like operators.
fn data() -> impl Strategy<Value = Value> {
    let inner = leaf().prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[a-e]", inner, 1..4).prop_map(|members| json!(members)),
        ]
    });
    proptest::collection::btree_map("[a-e]", inner, 1..4).prop_map(|members| json!(members))
}

/// Data whose arrays may be empty or contain arrays, and whose strings may be numbers.
fn deep_data() -> impl Strategy<Value = Value> {
    let word = prop_oneof![leaf(), "-?[0-9]{1,2}(\\.[0-9])?".prop_map(Value::from)];
    let inner = word.prop_recursive(5, 48, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[a-e]", inner, 0..4).prop_map(|members| json!(members)),
        ]
    });
    proptest::collection::btree_map("[a-e]", inner, 0..4).prop_map(|members| json!(members))
}

/// A filter that names every leaf of the data outside arrays, and the first leaf of each array of leaves.
fn filter_of(value: &Value) -> Option<Value> {
    match value {
        Value::Object(members) => {
            let named = members.iter().filter_map(|(name, value)| Some((name.clone(), filter_of(value)?)));
            let named: serde_json::Map<_, _> = named.collect();
            (!named.is_empty()).then(|| named.into())
        }
        Value::Array(elements) => elements.iter().find_map(filter_of),
        leaf => Some(json!([leaf])),
    }
}

/// A filter with every condition, in members, objects and alternatives.
fn a_filter() -> impl Strategy<Value = Value> {
    let text = || "-?[a-c0-9é]{1,2}";
    let operator = prop_oneof![Just("prefix"), Just("suffix"), Just("equals-ignore-case")];
    let text_test = (operator, text()).prop_map(|(operator, text)| json!({ operator: text }));
    let comparison = prop_oneof![Just("<"), Just("<="), Just("="), Just(">="), Just(">")];
    let numeric = (comparison, -20..20).prop_map(|(comparison, number)| json!({ "numeric": [comparison, number] }));
    let refused = prop_oneof![leaf(), text_test.clone(), proptest::collection::vec(leaf(), 1..3).prop_map(Value::from)];
    let condition = prop_oneof![
        leaf(),
        text().prop_map(Value::from),
        text_test,
        numeric,
        any::<bool>().prop_map(|exists| json!({ "exists": exists })),
        refused.prop_map(|refused| json!({ "anything-but": refused })),
    ];
    let conditions = proptest::collection::vec(condition, 1..4).prop_map(Value::from);
    let members = |node: BoxedStrategy<Value>| proptest::collection::btree_map("[a-e]", node, 1..3);
    let of_members = |members| json!(members);
    members(conditions.clone().boxed()).prop_map(of_members).prop_recursive(3, 16, 3, move |inner| {
        let node = prop_oneof![conditions.clone(), inner.clone()].boxed();
        let alternatives = proptest::collection::vec(inner, 1..3);
        let with_alternatives = (members(node.clone()), alternatives).prop_map(move |(members, alternatives)| {
            let mut pattern = of_members(members);
            pattern["$or"] = alternatives.into();
            pattern
        });
        prop_oneof![members(node).prop_map(of_members), with_alternatives]
    })
}

/// Any JSON that looks like a filter, valid or not.
fn almost_a_filter() -> impl Strategy<Value = Value> {
    let name = prop_oneof![
        Just("$or".to_owned()),
        Just("prefix".to_owned()),
        Just("suffix".to_owned()),
        Just("exists".to_owned()),
        Just("numeric".to_owned()),
        Just("anything-but".to_owned()),
        Just("equals-ignore-case".to_owned()),
        "[a-e]",
    ];
    let word = prop_oneof![leaf(), Just(json!("<")), Just(json!(">=")), Just(json!("="))];
    word.prop_recursive(4, 32, 4, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(name.clone(), inner, 0..3).prop_map(|members| json!(members)),
        ]
    })
}

proptest! {
    #[test]
    fn a_filter_of_the_values_of_an_event_matches_it(data in data()) {
        if let Some(filter) = filter_of(&data) {
            prop_assert!(matches(&filter.to_string(), &data.to_string()), "{filter}");
        }
    }

    #[test]
    fn a_filter_matches_as_the_plain_evaluation_says(json in a_filter(), data in deep_data()) {
        let data = raw(serde_json::to_string_pretty(&data).expect("JSON"));
        let pattern = Pattern::read(&raw(&json)).expect("a filter");
        prop_assert_eq!(compared(&filter(&json), &data) == FilterOutcome::Matches, plain::matches(&pattern, &data));
    }

    #[test]
    fn data_read_as_serde_reads_them(data in deep_data(), pretty in any::<bool>()) {
        let text = if pretty { serde_json::to_string_pretty(&data) } else { serde_json::to_string(&data) };
        let data = raw(text.expect("JSON"));
        prop_assert_eq!(EventData::read(&data), EventData(plain::read(&data)));
    }

    #[test]
    fn anything_but_is_the_negation_of_equality(value in leaf(), wanted in leaf()) {
        let data = json!({ "a": value }).to_string();
        let equal = matches(&json!({ "a": [wanted] }).to_string(), &data);
        let other = matches(&json!({ "a": [{ "anything-but": wanted }] }).to_string(), &data);
        prop_assert_ne!(equal, other);
    }

    #[test]
    fn a_member_exists_or_does_not(data in data()) {
        let wanting = |exists: bool| matches(&json!({ "a": [{ "exists": exists }] }).to_string(), &data.to_string());
        prop_assert_ne!(wanting(true), wanting(false));
        prop_assert_eq!(wanting(true), data.get("a").is_some());
    }

    #[test]
    fn alternatives_match_if_one_of_them_does(data in data(), one in leaf(), other in leaf()) {
        let of = |value: &Value| json!({ "a": [value] });
        let single = [&one, &other].map(|value| matches(&of(value).to_string(), &data.to_string()));
        let either = json!({ "$or": [of(&one), of(&other)] }).to_string();
        prop_assert_eq!(matches(&either, &data.to_string()), single[0] || single[1]);
    }

    #[test]
    fn a_filter_as_it_is_stored_reads_as_the_same_filter(filter in almost_a_filter()) {
        let pretty = serde_json::to_string_pretty(&filter).expect("JSON");
        if let Ok(read) = EventFilter::read(&pretty) {
            let again = EventFilter::read(read.as_str());
            prop_assert_eq!(again.as_ref(), Ok(&read));
            prop_assert_eq!(Pattern::read(&raw(read.as_str())), Pattern::read(&raw(pretty)));
        }
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "[\\[\\]{}\":,a0<$or\\\\ ]{0,60}", data in data()) {
        if let Ok(filter) = EventFilter::read(&text) {
            compared(&filter, &raw(data));
        }
    }
}
