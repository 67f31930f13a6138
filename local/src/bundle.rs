//! Each function's environment on this machine: the template's, with references resolved.

use std::{collections::BTreeMap, net::SocketAddr};

use serde_json::Value;
use template::{Function, Reference, ResolveError, Template, resolve_to_text};

use crate::{
    aws::{self, Endpoints, queue_url},
    settings::Settings,
    table::TABLE_NAME,
};

/// The name of this deployment.
pub const ENVIRONMENT: &str = "local";

/// A function's variables.
pub type Environment = BTreeMap<String, String>;

/// The template, and the values of its references.
pub struct Bundle<'a> {
    pub template: &'a Template,
    pub settings: &'a Settings,
    /// The address of the API and the issuer.
    pub base_url: &'a str,
    /// The address of the server for the queues.
    pub services: SocketAddr,
    /// The store for published geo-IP databases: a folder here, a bucket on AWS.
    pub geo_ip_store: &'a str,
}

/// The variable that holds the store's address, which the template derives from a bucket's name.
const GEO_IP_STORE: &str = "GEO_IP_STORE";

/// A variable that cannot be resolved for a function.
#[derive(Debug, thiserror::Error)]
#[error("template.yaml: {function}: the variable {variable} has no value on one machine")]
pub struct EnvironmentError {
    function: String,
    variable: String,
    source: ResolveError,
}

impl Bundle<'_> {
    /// The function's variables from the template, and the variables that direct its SDK to the stand-ins.
    pub fn environment(&self, function: &Function, aws: &Endpoints) -> Result<Environment, EnvironmentError> {
        let own = aws.variables().map(|(name, value)| Ok((name.to_owned(), value.to_owned())));
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
        variables.chain(own).collect()
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
    use base::random::SystemRandom;

    use super::*;
    use crate::aws::Credentials;

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
        let aws = Endpoints {
            credentials: Credentials::fresh(&SystemRandom),
            table: "http://127.0.0.2:1".to_owned(),
            services: "http://127.0.0.2:2".to_owned(),
        };
        for function in template.functions() {
            let environment = bundle.environment(function, &aws).expect("resolved");
            assert_eq!(environment["TABLE_NAME"], TABLE_NAME, "{}", function.name);
            assert_eq!(environment["AWS_ENDPOINT_URL_DYNAMODB"], "http://127.0.0.2:1", "{}", function.name);
            let secrets = environment.get("SECRETS_PREFIX");
            assert!(secrets.is_none_or(|prefix| prefix == "waypost/local/"), "{}", function.name);
        }
        let geo_ip = template.function("geo-ip-update").expect("declared");
        assert_eq!(bundle.environment(geo_ip, &aws).expect("resolved")["GEO_IP_STORE"], "file:///data/geo-ip");
        let publish = template.function("publish-event").expect("declared");
        let queue = &bundle.environment(publish, &aws).expect("resolved")["QUEUE_URL"];
        assert_eq!(queue, "http://127.0.0.1:4566/000000000000/DeliveryQueue");
    }
}
