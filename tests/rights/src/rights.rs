//! The rights of every function in a template.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use template::{Function, Reference, ResolveError, Template, resolve};

use crate::{
    names::Deployed,
    policies::{self, Policy, PolicyError},
    statement::{Statement, StatementError},
};

/// The rights of one function.
#[derive(Debug, Clone)]
pub struct FunctionRights {
    /// The name that the function and its binary share.
    pub name: String,
    /// The function's logical id in the template.
    pub logical_id: String,
    /// The function's statements, with references resolved.
    pub(crate) statements: Vec<Statement>,
    /// The function's statements with references as `${Name}`, which are the same in all deployments.
    pub(crate) written: Vec<Statement>,
    policies: Vec<Policy>,
}

/// All functions' rights by name, with the data that is needed to read calls.
#[derive(Debug, Clone)]
pub struct Rights {
    /// The deployment that the rights belong to.
    pub(crate) deployed: Deployed,
    /// The partition keys of the table, and of each index by name.
    pub(crate) partition_keys: BTreeMap<Option<String>, String>,
    functions: BTreeMap<String, FunctionRights>,
}

/// Why a template's rights cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RightsError {
    /// A function's policies cannot be read.
    #[error("template.yaml: {function}")]
    Policies {
        /// The function's logical id.
        function: String,
        /// Why the policies cannot be read.
        source: PolicyError,
    },
    /// A reference has no value.
    #[error("template.yaml: {statement}")]
    Reference {
        /// The statement's policy, and its position in the policy.
        statement: String,
        /// Why the reference cannot be resolved.
        source: ResolveError,
    },
    /// A statement is not understood.
    #[error("template.yaml: {statement}")]
    Statement {
        /// The statement's policy, and its position in the policy.
        statement: String,
        /// Why the statement is not understood.
        source: StatementError,
    },
}

impl Rights {
    /// Reads the rights that a template grants in a deployment.
    ///
    /// # Errors
    /// Fails if a policy has an element that this crate does not support.
    pub fn read(template: &Template, deployed: Deployed) -> Result<Self, RightsError> {
        let resources = template.resources();
        let functions = template
            .functions()
            .iter()
            .map(|function| Ok((function.name.clone(), FunctionRights::read(function, resources, &deployed)?)));
        let functions = functions.collect::<Result<_, _>>()?;
        Ok(Self { partition_keys: partition_keys(resources), deployed, functions })
    }

    /// The rights of all functions.
    pub fn functions(&self) -> impl Iterator<Item = &FunctionRights> {
        self.functions.values()
    }

    /// The rights of the function with this name.
    #[must_use]
    pub fn function(&self, name: &str) -> Option<&FunctionRights> {
        self.functions.get(name)
    }
}

impl FunctionRights {
    fn read(function: &Function, resources: &Map<String, Value>, deployed: &Deployed) -> Result<Self, RightsError> {
        let Function { name, logical_id: id, .. } = function;
        let properties = &resources[id]["Properties"];
        let policies = policies::of_function(properties, resources)
            .map_err(|source| RightsError::Policies { function: id.clone(), source })?;
        let all = |lookup: &dyn Fn(Reference<'_>) -> Option<Value>| -> Result<Vec<_>, RightsError> {
            let read = |(name, statement): (String, &Value)| {
                let at = || format!("{id}: {name}");
                let resolved =
                    resolve(statement, lookup).map_err(|source| RightsError::Reference { statement: at(), source })?;
                Statement::read(name.clone(), &resolved)
                    .map_err(|source| RightsError::Statement { statement: at(), source })
            };
            policies.iter().flat_map(named).map(read).collect()
        };
        let statements = all(&|reference| deployed.value(resources, reference))?;
        let written = all(&|reference| Some(format!("${{{reference}}}").into()))?;
        Ok(Self { name: name.clone(), logical_id: id.clone(), statements, written, policies })
    }

    /// A function's policies, both from the template and from SAM: their names and statements.
    pub fn policies(&self) -> impl Iterator<Item = (&str, &[Value])> {
        self.policies.iter().map(|policy| (&*policy.name, &*policy.statements))
    }
}

/// The statements in a policy, each with its name.
fn named(policy: &Policy) -> impl Iterator<Item = (String, &Value)> {
    let numbered = policy.statements.iter().enumerate();
    numbered.map(|(place, statement)| (format!("{} statement {}", policy.name, place + 1), statement))
}

fn partition_keys(resources: &Map<String, Value>) -> BTreeMap<Option<String>, String> {
    let mut keys = BTreeMap::new();
    for table in resources.values().filter(|resource| resource["Type"] == "AWS::DynamoDB::Table") {
        let properties = &table["Properties"];
        let hash = |schema: &Value| {
            let parts = schema.as_array().into_iter().flatten();
            let hash = parts.into_iter().find(|part| part["KeyType"] == "HASH");
            hash.and_then(|part| part["AttributeName"].as_str()).map(str::to_owned)
        };
        keys.extend(hash(&properties["KeySchema"]).map(|key| (None, key)));
        for index in properties["GlobalSecondaryIndexes"].as_array().into_iter().flatten() {
            let name = index["IndexName"].as_str().map(str::to_owned);
            keys.extend(hash(&index["KeySchema"]).map(|key| (name, key)));
        }
    }
    keys
}
