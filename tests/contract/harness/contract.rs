//! openapi.yaml, which the harness uses to check every response.

use std::{
    collections::{BTreeSet, HashMap},
    fs,
    sync::{Arc, Mutex},
};

use http::{HeaderMap, Method};
use jsonschema::Validator;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use super::{SeenMembers, project};

/// The methods that a path in an OpenAPI document can have.
const VERBS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];
/// Paths on which GET has an effect and HEAD is therefore not offered.
pub const NO_HEAD: [&str; 1] = ["/api/public/{provider}/oauth2/callback"];
/// The only path whose parameter matches the rest of a URL, including slashes.
const GREEDY: &str = "/panel/{page}";
/// The responses for unknown paths and methods, which belong to no operation.
const UNKNOWN_PATH: &str = "/components/responses/NotFoundInBrowser";
const UNKNOWN_VERB: &str = "/components/responses/MethodNotAllowed";
/// The response to OPTIONS for documents that scripts from any origin may read, which no operation lists either.
const PREFLIGHT: &str = "/components/responses/Preflight";

/// The document, and the validators created from it so far.
pub struct Contract {
    pub document: Value,
    /// The members seen in responses so far.
    pub members: SeenMembers,
    unknown_path: Value,
    unknown_verb: Value,
    validators: Mutex<HashMap<String, Arc<Validator>>>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Operation {
    /// The path, with its parameters in braces.
    pub path: String,
    /// The method, in capitals.
    pub method: String,
    /// The name of the operation.
    pub id: String,
    pub needs_token: bool,
    /// The scope that the token needs, if any.
    pub scope: Option<String>,
}

impl Contract {
    pub fn read() -> Self {
        let text = fs::read_to_string(project().join("openapi.yaml")).expect("the project has an openapi.yaml");
        let document = template::contract(&text).expect("openapi.yaml is YAML");
        let unknown_path = document.pointer(UNKNOWN_PATH).expect("openapi.yaml declares it").clone();
        // An unknown method also gets a page, with the headers that every error page has.
        let mut unknown_verb = unknown_path.clone();
        let declared = document.pointer(UNKNOWN_VERB).expect("openapi.yaml declares it");
        for part in ["headers", "content"] {
            for (name, value) in declared[part].as_object().into_iter().flatten() {
                unknown_verb[part][name] = value.clone();
            }
        }
        Self { document, members: SeenMembers::default(), unknown_path, unknown_verb, validators: Mutex::default() }
    }

    pub fn operations(&self) -> Vec<Operation> {
        let mut operations: Vec<Operation> = self
            .paths()
            .flat_map(|(path, item)| {
                VERBS.iter().filter_map(move |verb| {
                    let operation = item.get(*verb)?;
                    Some(Operation {
                        path: path.clone(),
                        method: verb.to_uppercase(),
                        id: operation["operationId"].as_str().unwrap_or_default().to_owned(),
                        needs_token: operation.pointer("/security/0/oauth2").is_some(),
                        scope: operation.pointer("/security/0/oauth2/0").and_then(Value::as_str).map(str::to_owned),
                    })
                })
            })
            .collect();
        operations.sort();
        operations
    }

    /// A path's methods, in capitals. GET implies HEAD and OPTIONS, which the document does not list.
    pub fn verbs(&self, path: &str) -> BTreeSet<String> {
        let operations = self.operations().into_iter().filter(|operation| operation.path == path);
        let mut verbs: BTreeSet<String> = operations.map(|operation| operation.method).collect();
        if verbs.contains("GET") && !NO_HEAD.contains(&path) {
            verbs.insert("HEAD".to_owned());
        }
        if self.is_open(path) {
            verbs.insert("OPTIONS".to_owned());
        }
        verbs
    }

    /// Whether scripts from any origin may read the document at this path.
    fn is_open(&self, path: &str) -> bool {
        let headers = &self.document["paths"][path]["get"]["responses"]["200"]["headers"];
        headers.get("Access-Control-Allow-Origin").is_some()
    }

    /// All kinds of Problem.
    pub fn problem_kinds(&self) -> BTreeSet<String> {
        let mut kinds = BTreeSet::new();
        for part in [&self.document["paths"], &self.document["components"]["responses"]] {
            collect_problem_kinds(part, &mut kinds);
        }
        kinds
    }

    /// How this response violates the document; empty if it conforms.
    pub fn faults(&self, method: &Method, path: &str, status: u16, headers: &HeaderMap, body: &[u8]) -> Vec<String> {
        let response = match self.response(method, path, status) {
            Ok(response) => response,
            Err(fault) => return vec![fault],
        };
        let mut faults = self.header_faults(response, headers);
        let content = response.get("content").and_then(Value::as_object);
        if *method != Method::HEAD {
            faults.extend(self.body_faults(content, headers, body));
        }
        faults
    }

    fn paths(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.document["paths"].as_object().into_iter().flatten()
    }

    /// The document's declaration of this response.
    fn response(&self, method: &Method, path: &str, status: u16) -> Result<&Value, String> {
        let path = path.split('?').next().unwrap_or_default();
        let Some((template, item)) = self
            .paths()
            .filter(|(template, _)| matches(template, path))
            .min_by_key(|(template, _)| literalness(template))
        else {
            return if status == 404 {
                Ok(&self.unknown_path)
            } else {
                Err(format!("{status} on a path that openapi.yaml does not have"))
            };
        };
        let verb =
            if *method == Method::HEAD && !NO_HEAD.contains(&template.as_str()) { Method::GET } else { method.clone() };
        if *method == Method::OPTIONS && status == 204 && self.is_open(template) {
            return Ok(self.document.pointer(PREFLIGHT).expect("openapi.yaml declares it"));
        }
        let Some(operation) = item.get(verb.as_str().to_ascii_lowercase()) else {
            return if status == 405 {
                Ok(&self.unknown_verb)
            } else {
                Err(format!("{status} on a verb that openapi.yaml does not have at {template}"))
            };
        };
        match operation["responses"].get(status.to_string()) {
            Some(response) => Ok(self.resolved(response)),
            None => Err(format!("openapi.yaml declares no {status} for {method} {template}")),
        }
    }

    fn header_faults(&self, response: &Value, headers: &HeaderMap) -> Vec<String> {
        let declared = response["headers"].as_object().into_iter().flatten();
        let mut faults = Vec::new();
        for (name, header) in declared {
            let header = self.resolved(header);
            match headers.get(name) {
                None if header["required"] == true => faults.push(format!("the header {name} is missing")),
                None => {}
                Some(value) => {
                    let value = Value::from(String::from_utf8_lossy(value.as_bytes()));
                    faults.extend(self.schema_faults(&header["schema"], &value, name));
                }
            }
        }
        faults
    }

    fn body_faults(&self, content: Option<&Map<String, Value>>, headers: &HeaderMap, body: &[u8]) -> Vec<String> {
        let content_type = headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        let Some(content) = content else {
            return if body.is_empty() { vec![] } else { vec!["a body where openapi.yaml declares none".to_owned()] };
        };
        let Some(declared) = content.get(media_type) else {
            return vec![format!("the content type is `{content_type}`, which openapi.yaml does not declare")];
        };
        if !media_type.ends_with("json") {
            return if body.is_empty() { vec!["the body is empty".to_owned()] } else { vec![] };
        }
        match serde_json::from_slice(body) {
            Ok(body) => {
                self.members.note(&self.document, &declared["schema"], "", &body);
                let mut faults = self.schema_faults(&declared["schema"], &body, "body");
                faults.extend(kind_fault(declared, &body));
                faults.extend(self.property_faults(&body));
                faults
            }
            Err(error) => vec![format!("the body is not JSON: {error}")],
        }
    }

    /// The members of a Problem's `properties` that the document does not declare for its kind.
    fn property_faults(&self, body: &Value) -> Vec<String> {
        let Some(kind) = body["kind"].as_str().filter(|_| body["instance"].is_string()) else { return Vec::new() };
        let declared = &self.document["components"]["schemas"]["ProblemProperties"]["properties"];
        let is_declared = |name: &str| {
            declared_kinds(&declared[name]).is_some_and(|mut kinds| kinds.any(|declared| declared == kind))
        };
        let members = body["properties"].as_object().into_iter().flatten().map(|(name, _)| name);
        let undeclared = members.filter(|name| !is_declared(name));
        undeclared.map(|name| format!("ProblemProperties does not declare `{name}` for {kind}")).collect()
    }

    /// How a value violates one of the document's schemas. A member that the schema does not list is a fault, although
    /// clients ignore it: the document must be complete.
    pub fn schema_faults(&self, schema: &Value, value: &Value, what: &str) -> Vec<String> {
        let validator = self.validator(schema);
        validator.iter_errors(value).map(|error| format!("{what}{}: {error}", error.instance_path())).collect()
    }

    /// The validator for a schema, including the document's components, which the schema may refer to.
    fn validator(&self, schema: &Value) -> Arc<Validator> {
        let key = schema.to_string();
        let mut validators = self.validators.lock().expect("no holder panics");
        let made = validators.entry(key).or_insert_with(|| {
            let mut whole = schema.clone();
            whole["components"] = self.document["components"].clone();
            close(&mut whole);
            close_values(&mut whole);
            // The document lacks this pattern, since generated C# clients would not compile with it.
            whole["components"]["schemas"]["Timestamp"]["pattern"] = r"T\d{2}:\d{2}:\d{2}\.\d{3}Z$".into();
            let validator = jsonschema::draft202012::options().should_validate_formats(true).build(&whole);
            Arc::new(validator.unwrap_or_else(|error| panic!("openapi.yaml has an invalid schema: {error}: {schema}")))
        });
        Arc::clone(made)
    }

    /// The value that a `$ref` points to, or the value itself.
    pub fn resolved<'a>(&'a self, value: &'a Value) -> &'a Value {
        value.get("$ref").and_then(Value::as_str).map_or(value, |reference| self.at(reference))
    }

    fn at(&self, reference: &str) -> &Value {
        let pointer = reference.trim_start_matches('#');
        self.document.pointer(pointer).unwrap_or_else(|| panic!("openapi.yaml has no {reference}"))
    }
}

fn matches(template: &str, path: &str) -> bool {
    if template == GREEDY {
        return path.strip_prefix("/panel/").is_some_and(|page| !page.is_empty() && !page.starts_with('/'));
    }
    let (template, path): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
    template.len() == path.len()
        && template
            .iter()
            .zip(path)
            // Paths that differ only in encoding are the same path (RFC 3986 §6.2.2.2).
            .all(|(segment, given)| {
                percent_decode_str(given).eq(segment.bytes()) || segment.starts_with('{') && !given.is_empty()
            })
}

/// A matching path's precedence, lowest first: a literal segment comes before a parameter.
fn literalness(template: &str) -> Vec<bool> {
    template.split('/').map(|segment| segment.starts_with('{')).collect()
}

/// The kinds of Problem that a response's declaration lists, if it is for Problems.
fn declared_kinds(content: &Value) -> Option<impl Iterator<Item = &str>> {
    Some(content.get("x-problem-kinds")?.as_array()?.iter().filter_map(Value::as_str))
}

fn kind_fault(content: &Value, body: &Value) -> Option<String> {
    let kind = body["kind"].as_str().unwrap_or_default();
    let unknown = declared_kinds(content).is_some_and(|mut kinds| !kinds.any(|declared| declared == kind));
    unknown.then(|| format!("x-problem-kinds does not list {kind}"))
}

fn collect_problem_kinds(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            found.extend(declared_kinds(value).into_iter().flatten().map(str::to_owned));
            members.values().for_each(|member| collect_problem_kinds(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_problem_kinds(item, found)),
        _ => {}
    }
}

/// Makes each string whose `examples` list the known values refuse all other values. The document leaves responses
/// open, so that generated clients accept values from later releases.
pub fn close_values(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members.get("type") == Some(&"string".into())
                && let Some(known) = members.get("examples").filter(|examples| examples.is_array()).cloned()
            {
                members.insert("enum".to_owned(), known);
            }
            members.values_mut().for_each(close_values);
        }
        Value::Array(items) => items.iter_mut().for_each(close_values),
        _ => {}
    }
}

/// Makes each object in a schema refuse unlisted members, unless the schema declares them. The document leaves
/// responses open, so that generated clients accept members from later releases.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members.get("type") == Some(&"object".into()) && members.contains_key("properties") {
                members.entry("additionalProperties").or_insert(false.into());
            }
            members.values_mut().for_each(close);
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}
