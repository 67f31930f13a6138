//! The environment of each function on this machine: the template's, with its references resolved.

use std::net::SocketAddr;

use serde_json::Value;
use template::{Function, Reference, ResolveError, Template, resolve_to_text};

use crate::{aws, ministack::queue_url, settings::Settings, table::TABLE_NAME};

/// The name of this deployment.
pub const ENVIRONMENT: &str = "local";

/// The template, and the values of its references.
pub struct Bundle<'a> {
    pub template: &'a Template,
    pub settings: &'a Settings,
    /// The address of API and issuer.
    pub base_url: &'a str,
    /// Where the queues are.
    pub services: SocketAddr,
    /// Where geo-IP databases are published: in a folder, where AWS has a bucket.
    pub geo_ip_store: &'a str,
}

/// The variable with the address of the store. The template makes it of a bucket's name.
const GEO_IP_STORE: &str = "GEO_IP_STORE";

/// A variable of a function cannot be resolved.
#[derive(Debug, thiserror::Error)]
#[error("template.yaml: {function}: the variable {variable} has no value on one machine")]
pub struct EnvironmentError {
    function: String,
    variable: String,
    source: ResolveError,
}

impl Bundle<'_> {
    /// Every variable that the template gives the function.
    pub fn environment(&self, function: &Function) -> Result<Vec<(String, String)>, EnvironmentError> {
        let variables = function.environment.iter().map(|(variable, value)| {
            if variable == GEO_IP_STORE {
                return Ok((variable.clone(), self.geo_ip_store.to_owned()));
            }
            let value = resolve_to_text(value, &|reference| self.value(reference));
            let value = value.map_err(|source| EnvironmentError {
                function: function.name.clone(),
                variable: variable.clone(),
                source,
            })?;
            Ok((variable.clone(), value))
        });
        variables.collect()
    }

    fn value(&self, reference: Reference<'_>) -> Option<Value> {
        let Reference::Name(name) = reference else { return None };
        let text = match name {
            "Environment" => ENVIRONMENT.to_owned(),
            "BaseUrl" | "AuthUrl" => self.base_url.to_owned(),
            "AWS::Region" => aws::REGION.to_owned(),
            "AWS::AccountId" => aws::ACCOUNT.to_owned(),
            _ if self.template.tables().iter().any(|table| table.logical_id == name) => TABLE_NAME.to_owned(),
            _ if self.template.queues().iter().any(|queue| queue.logical_id == name) => queue_url(self.services, name),
            _ => self.settings.parameters.get(name)?.clone(),
        };
        Some(text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_of_the_template_has_its_environment_here() {
        let template = Template::parse(include_str!("../../template.yaml")).expect("the project's template");
        let settings = Settings::read(&template, |_| None).expect("defaults");
        let bundle = Bundle {
            template: &template,
            settings: &settings,
            base_url: "http://127.0.0.1:9000",
            services: ([127, 0, 0, 1], 4566).into(),
            geo_ip_store: "file:///data/geo-ip",
        };
        for function in template.functions() {
            let environment = bundle.environment(function).expect("resolved");
            assert!(environment.contains(&("TABLE_NAME".to_owned(), TABLE_NAME.to_owned())), "{}", function.name);
            let secrets = environment.iter().find(|(name, _)| name == "SECRETS_PREFIX");
            assert!(secrets.is_none_or(|(_, prefix)| prefix == "waypost/local/"), "{}", function.name);
        }
        let geo_ip = template.function("geo-ip-update").expect("declared");
        let store = ("GEO_IP_STORE".to_owned(), "file:///data/geo-ip".to_owned());
        assert!(bundle.environment(geo_ip).expect("resolved").contains(&store));
        let publish = template.function("publish-event").expect("declared");
        let queue = ("QUEUE_URL".to_owned(), "http://127.0.0.1:4566/000000000000/DeliveryQueue".to_owned());
        assert!(bundle.environment(publish).expect("resolved").contains(&queue));
    }
}
