//! A typed view of template.yaml: the functions, their routes, the table, the queues and the parameters' defaults.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::{Function, Queue, QueueTrigger, Route, Table, TemplateError, yaml_to_json};

/// The deployment, read and checked once.
#[derive(Debug, Clone)]
pub struct Template {
    functions: Vec<Function>,
    tables: Vec<Table>,
    queues: Vec<Queue>,
    defaults: BTreeMap<String, String>,
    resources: Map<String, Value>,
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// If the text is not YAML, or a resource has an unsupported form.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let document = yaml_to_json(text).map_err(TemplateError::Yaml)?;
        let defaults = defaults(&document["Parameters"]);
        let resources = document["Resources"].as_object().ok_or(TemplateError::Section("Resources"))?;
        let globals = &document["Globals"]["Function"];
        let of_type = |kind: &'static str| {
            resources
                .iter()
                .filter(move |(_, resource)| resource["Type"] == kind)
                .map(|(id, resource)| (id.as_str(), &resource["Properties"]))
        };
        let rotates = |function: &str| {
            of_type("AWS::SecretsManager::RotationSchedule")
                .any(|(_, properties)| properties["RotationLambdaARN"]["Fn::GetAtt"][0] == function)
        };
        let mappings =
            of_type("AWS::Lambda::EventSourceMapping").map(|(id, properties)| QueueTrigger::read(id, properties));
        let mappings: Vec<_> = mappings.collect::<Result<_, _>>()?;
        if let Some((missing, _)) = mappings.iter().find(|(invoked, _)| !resources.contains_key(invoked)) {
            let what = "the function that an AWS::Lambda::EventSourceMapping invokes";
            return Err(TemplateError::Member { resource: missing.clone(), what });
        }
        let queues = |function: &str| {
            mappings.iter().filter(|(invoked, _)| invoked == function).map(|(_, trigger)| trigger.clone()).collect()
        };
        Ok(Self {
            functions: of_type("AWS::Serverless::Function")
                .map(|(id, properties)| {
                    let function = Function::read(id, properties, globals)?;
                    Ok(Function { rotates: rotates(id), queues: queues(id), ..function })
                })
                .collect::<Result<_, _>>()?,
            tables: of_type("AWS::DynamoDB::Table")
                .map(|(id, properties)| Table::read(id, properties))
                .collect::<Result<_, _>>()?,
            queues: of_type("AWS::SQS::Queue").map(|(id, properties)| Queue::read(id, properties)).collect(),
            resources: resources.clone(),
            defaults,
        })
    }

    /// Every function.
    #[must_use]
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// The function with this name.
    #[must_use]
    pub fn function(&self, name: &str) -> Option<&Function> {
        self.functions.iter().find(|function| function.name == name)
    }

    /// Every HTTP route, sorted by path and method.
    #[must_use]
    pub fn routes(&self) -> Vec<Route> {
        let mut routes: Vec<Route> =
            self.functions.iter().flat_map(|function| function.routes.iter().cloned()).collect();
        routes.sort();
        routes
    }

    /// Every table.
    #[must_use]
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// Every queue.
    #[must_use]
    pub fn queues(&self) -> &[Queue] {
        &self.queues
    }

    /// Every resource as JSON, by its logical id, for kinds without a type in this crate.
    #[must_use]
    pub fn resources(&self) -> &Map<String, Value> {
        &self.resources
    }

    /// The parameters that have a default, each with its default.
    #[must_use]
    pub fn defaults(&self) -> &BTreeMap<String, String> {
        &self.defaults
    }
}

fn defaults(parameters: &Value) -> BTreeMap<String, String> {
    parameters
        .as_object()
        .into_iter()
        .flat_map(Map::iter)
        .filter_map(|(name, parameter)| match parameter.get("Default")? {
            Value::String(text) => Some((name.clone(), text.clone())),
            value => Some((name.clone(), value.to_string())),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    const TEMPLATE: &str = r"
Parameters:
  Environment: {Type: String}
  TokenLifetime: {Type: Number, Default: 3600}
Globals:
  Function:
    Timeout: 15
    MemorySize: 256
    Environment: {Variables: {TABLE_NAME: !Ref Table}}
Resources:
  ProblemPage:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: target/lambda/problem-page
      Events:
        Get: {Type: HttpApi, Properties: {ApiId: !Ref Api, Path: '/problems/{kind}', Method: get}}
  Fallback:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: target/lambda/fallback
      Events:
        Any: {Type: HttpApi, Properties: {ApiId: !Ref Api}}
  Dispatch:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: target/lambda/dispatch
      Timeout: 60
      MemorySize: 512
      Environment: {Variables: {QUEUE_URL: !Ref Queue}}
      Events:
        Minute: {Type: ScheduleV2, Properties: {ScheduleExpression: rate(1 minute)}}
        Bus: {Type: EventBridgeRule, Properties: {Pattern: {detail-type: [something.happened]}}}
  DispatchOfQueue:
    Type: AWS::Lambda::EventSourceMapping
    Properties:
      FunctionName: !Ref Dispatch.Alias
      EventSourceArn: !GetAtt Queue.Arn
      BatchSize: 10
      FunctionResponseTypes: [ReportBatchItemFailures]
      ScalingConfig: {MaximumConcurrency: 50}
  DispatchOfOther:
    Type: AWS::Lambda::EventSourceMapping
    Properties:
      FunctionName: !Ref Dispatch.Alias
      EventSourceArn: !GetAtt Other.Arn
      BatchSize: 1
      MaximumBatchingWindowInSeconds: 5
      ScalingConfig: {MaximumConcurrency: 2}
  Rotate: {Type: 'AWS::Serverless::Function', Properties: {CodeUri: target/lambda/rotate}}
  Rotation: {Type: 'AWS::SecretsManager::RotationSchedule', Properties: {RotationLambdaARN: !GetAtt Rotate.Arn}}
  Table:
    Type: AWS::DynamoDB::Table
    Properties:
      AttributeDefinitions: [{AttributeName: pk, AttributeType: S}]
      KeySchema: [{AttributeName: pk, KeyType: HASH}]
      TimeToLiveSpecification: {AttributeName: expiresAt, Enabled: true}
      SSESpecification: {SSEEnabled: true}
  Queue:
    Type: AWS::SQS::Queue
    Properties:
      VisibilityTimeout: 120
      RedrivePolicy: {deadLetterTargetArn: !GetAtt DeadLetters.Arn, maxReceiveCount: 5}
  DeadLetters: {Type: AWS::SQS::Queue, Properties: {MessageRetentionPeriod: 1209600}}
";

    fn template() -> Template {
        Template::parse(TEMPLATE).expect("the template above is well formed")
    }

    #[test]
    fn a_function_has_the_settings_of_all_functions_and_its_own() {
        let template = template();
        let dispatch = template.function("dispatch").expect("declared above");
        assert_eq!(dispatch.timeout, Duration::from_secs(60));
        assert_eq!(dispatch.memory, 512);
        assert_eq!(dispatch.environment["TABLE_NAME"], json!({"Ref": "Table"}));
        assert_eq!(dispatch.environment["QUEUE_URL"], json!({"Ref": "Queue"}));
        assert_eq!(template.function("fallback").expect("declared above").memory, 256);
    }

    #[test]
    fn triggers_are_read() {
        let template = template();
        assert_eq!(
            template.routes(),
            [Route {
                path: "/problems/{kind}".to_owned(),
                method: "GET".to_owned(),
                function: "problem-page".to_owned(),
            }]
        );
        assert!(template.function("fallback").expect("declared above").answers_unmatched);
        let dispatch = template.function("dispatch").expect("declared above");
        assert_eq!(
            dispatch.queues,
            [("Other", 1, 5, false, 2), ("Queue", 10, 0, true, 50)].map(
                |(queue, batch_size, window, reports_failures, maximum_concurrency)| QueueTrigger {
                    queue: queue.to_owned(),
                    batch_size,
                    batching_window: Duration::from_secs(window),
                    reports_failures,
                    maximum_concurrency,
                }
            )
        );
        let schedule = dispatch.schedule.as_ref().expect("declared above");
        assert_eq!(schedule.every, Duration::from_secs(60));
        assert!(dispatch.bus && !template.function("problem-page").expect("declared above").bus);
        assert!(template.function("rotate").expect("declared above").rotates && !dispatch.rotates);
    }

    #[test]
    fn stores_are_read_as_their_services_create_them() {
        let template = template();
        let [table] = template.tables() else { panic!("one table is declared above") };
        assert_eq!(table.definition["KeySchema"][0]["AttributeName"], "pk");
        assert_eq!(table.definition["BillingMode"], "PAY_PER_REQUEST");
        assert!(table.definition.get("SSESpecification").is_none());
        assert_eq!(table.expiry_attribute.as_deref(), Some("expiresAt"));

        let queue = &template.queues()
            [template.queues().iter().position(|queue| queue.logical_id == "Queue").expect("declared above")];
        assert_eq!(queue.dead_letter, Some(("DeadLetters".to_owned(), 5)));
        assert_eq!(queue.attributes().collect::<Vec<_>>(), [("VisibilityTimeout", "120".to_owned())]);
        assert_eq!(template.defaults()["TokenLifetime"], "3600");
        assert!(!template.defaults().contains_key("Environment"));
    }

    #[test]
    fn a_fault_names_the_resource() {
        for (line, with, said) in [
            ("      BatchSize: 10\n", "", "DispatchOfQueue: missing or not understood: BatchSize"),
            (
                "      ScalingConfig: {MaximumConcurrency: 50}\n",
                "",
                "DispatchOfQueue: missing or not understood: ScalingConfig.MaximumConcurrency",
            ),
            (
                "FunctionName: !Ref Dispatch.Alias\n      EventSourceArn: !GetAtt Queue.Arn",
                "FunctionName: !Ref Dispatch\n      EventSourceArn: !GetAtt Queue.Arn",
                "DispatchOfQueue: missing or not understood: FunctionName (a !Ref of a function's Alias)",
            ),
            (
                "ScheduleV2",
                "SQS",
                "Dispatch: missing or not understood: an SQS event, in place of an AWS::Lambda::EventSourceMapping",
            ),
            (
                "        Minute: {",
                "        Hour: {Type: ScheduleV2, Properties: {ScheduleExpression: rate(1 hour)}}\n        Minute: {",
                "Dispatch: missing or not understood: a second ScheduleV2 event",
            ),
            (
                "!Ref Dispatch.Alias\n      EventSourceArn: !GetAtt Queue.Arn",
                "!Ref Gone.Alias\n      EventSourceArn: !GetAtt Queue.Arn",
                "Gone: missing or not understood: the function that an AWS::Lambda::EventSourceMapping invokes",
            ),
        ] {
            let fault = Template::parse(&TEMPLATE.replace(line, with)).expect_err(said);
            assert_eq!(fault.to_string(), said);
        }
    }
}
