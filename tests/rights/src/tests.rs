//! Tests of an entire template's grants, with calls as SDKs send them.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use template::Template;

use crate::{
    Access, CallError, Decision, Deployed, FunctionRights, Request, Rights, RightsError, accesses, of_mappings,
};

const TEMPLATE: &str = r"
Globals: {Function: {Timeout: 15, MemorySize: 256}}
Resources:
  Token:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: target/lambda/token
      EventInvokeConfig: {DestinationConfig: {OnFailure: {Type: SQS, Destination: !GetAtt Failed.Arn}}}
      Policies:
        - !Ref Reading
        - Statement:
            - Effect: Allow
              Action: [dynamodb:PutItem, dynamodb:PartiQLUpdate]
              Resource: !GetAtt Table.Arn
              Condition: {'ForAllValues:StringLike': {'dynamodb:LeadingKeys': ['ENT#*', 'OUTBOX#*']}}
            - {Effect: Allow, Action: dynamodb:Query, Resource: !Sub '${Table.Arn}/index/byDue'}
            - {Effect: Allow, Action: sqs:SendMessage, Resource: !GetAtt Queue.Arn}
            - Effect: Allow
              Action: secretsmanager:GetSecretValue
              Resource: [!Ref Key, !Sub 'arn:${AWS::Partition}:secretsmanager:${AWS::Region}:${AWS::AccountId}:secret:waypost/${Environment}/provider-*']
            - {Effect: Allow, Action: 's3:*Object', Resource: !Sub '${Bucket.Arn}/*'}
            - {Effect: Deny, Action: 's3:DeleteObject', Resource: !Sub '${Bucket.Arn}/kept/*'}
  Reading:
    Type: AWS::IAM::ManagedPolicy
    Properties:
      PolicyDocument:
        Statement:
          - Effect: Allow
            Action: [dynamodb:GetItem, dynamodb:BatchGetItem]
            Resource: !GetAtt Table.Arn
            Condition: {'ForAllValues:StringEquals': {'dynamodb:LeadingKeys': [KEYS, REVOKED]}}
  Table:
    Type: AWS::DynamoDB::Table
    Properties:
      AttributeDefinitions: []
      KeySchema: [{AttributeName: sk, KeyType: RANGE}, {AttributeName: pk, KeyType: HASH}]
      GlobalSecondaryIndexes: [{IndexName: byDue, KeySchema: [{AttributeName: dueShard, KeyType: HASH}]}]
  Queue: {Type: AWS::SQS::Queue}
  Failed: {Type: AWS::SQS::Queue}
  Bucket: {Type: AWS::S3::Bucket}
  Key: {Type: AWS::SecretsManager::Secret, Properties: {Name: !Sub 'waypost/${Environment}/key'}}
";

fn deployed() -> Deployed {
    Deployed {
        region: "us-east-1".to_owned(),
        account: "000000000000".to_owned(),
        table: "things".to_owned(),
        bucket: "files".to_owned(),
        parameters: BTreeMap::from([("Environment".to_owned(), "local".to_owned())]),
    }
}

fn read(template: &str) -> Result<Rights, RightsError> {
    Rights::read(&Template::parse(template).expect("a template"), deployed())
}

fn rights(template: &str) -> Rights {
    read(template).expect("well-formed")
}

/// A call's accesses, each with the decision on it.
fn decided(function: &str, target: &str, body: Value) -> Vec<(String, bool)> {
    let rights = rights(TEMPLATE);
    let asked = accesses(&rights, &json_request(target, body)).expect("understood");
    let function = rights.function(function).expect("declared");
    let short = |access: &Access| access.to_string().replace("arn:aws:dynamodb:us-east-1:000000000000:table/", "");
    asked.iter().map(|access| (short(access), may(function, access))).collect()
}

fn json_request(target: &str, body: Value) -> Request {
    Request::Json { target: target.to_owned(), body }
}

fn s3_request(method: &str, path: &str, query: &str, absent: bool) -> Request {
    let [method, path, query] = [method, path, query].map(str::to_owned);
    Request::S3 { method, path, query, absent }
}

fn may(function: &FunctionRights, access: &Access) -> bool {
    matches!(function.decide(access), Decision::Allowed(_))
}

fn key(pk: &str) -> Value {
    json!({ "pk": { "S": pk }, "sk": { "S": "x" } })
}

#[test]
fn single_calls_batches_and_transactions_ask_for_what_aws_asks() {
    let said = |text: &str, allowed| (text.to_owned(), allowed);
    let get = |pk| json!({ "TableName": "things", "Key": key(pk) });
    assert_eq!(
        decided("token", "DynamoDB_20120810.GetItem", get("KEYS")),
        [said("dynamodb:GetItem on things for KEYS", true)]
    );
    assert_eq!(
        decided("token", "DynamoDB_20120810.GetItem", get("KEYS#1")),
        [said("dynamodb:GetItem on things for KEYS#1", false)]
    );
    let batch = |other| json!({ "RequestItems": { "things": { "Keys": [key("KEYS"), key(other)] } } });
    assert_eq!(
        decided("token", "DynamoDB_20120810.BatchGetItem", batch("REVOKED")),
        [said("dynamodb:BatchGetItem on things for KEYS, REVOKED", true)]
    );
    assert!(!decided("token", "DynamoDB_20120810.BatchGetItem", batch("ENT#1"))[0].1, "one of the keys is not granted");
    let transaction = json!({ "TransactItems": [
        { "Put": { "TableName": "things", "Item": key("ENT#1") } },
        { "Update": { "TableName": "things", "Key": key("ENT#1") } },
        { "ConditionCheck": { "TableName": "things", "Key": key("OUTBOX#1") } },
    ] });
    assert_eq!(
        decided("token", "DynamoDB_20120810.TransactWriteItems", transaction),
        [
            said("dynamodb:PutItem on things for ENT#1", true),
            said("dynamodb:UpdateItem on things for ENT#1", false),
            said("dynamodb:ConditionCheckItem on things for OUTBOX#1", false),
        ]
    );
    let writes = json!([{ "PutRequest": { "Item": key("ENT#1") } }, { "DeleteRequest": { "Key": key("ENT#2") } }]);
    assert_eq!(
        decided("token", "DynamoDB_20120810.BatchWriteItem", json!({ "RequestItems": { "things": writes } })),
        [said("dynamodb:BatchWriteItem on things for ENT#1, ENT#2", false)]
    );
}

#[test]
fn partiql_needs_the_rights_of_its_verbs_for_its_partitions() {
    let update = |pk: &str| {
        json!({
            "Statement": r#"UPDATE "things" SET "a"=? WHERE "pk"=? AND "sk"=?"#,
            "Parameters": [{ "N": "1" }, { "S": pk }, { "S": "x" }],
        })
    };
    let statements = json!({ "Statements": [update("ENT#1"), update("DLV#1")] });
    assert_eq!(
        decided("token", "DynamoDB_20120810.BatchExecuteStatement", statements),
        [
            ("dynamodb:PartiQLUpdate on things for ENT#1".to_owned(), true),
            ("dynamodb:PartiQLUpdate on things for DLV#1".to_owned(), false),
        ]
    );
    let whole = json!({ "Statement": r#"SELECT * FROM "things""# });
    assert_eq!(
        decided("token", "DynamoDB_20120810.ExecuteStatement", whole),
        [("dynamodb:PartiQLSelect on things".to_owned(), false)]
    );
}

#[test]
fn queries_are_about_the_partition_of_the_table_or_of_the_index() {
    let query = |index: Value, attribute: &str| {
        json!({
            "TableName": "things", "IndexName": index, "KeyConditionExpression": "#n0 = :v0",
            "ExpressionAttributeNames": { "#n0": attribute }, "ExpressionAttributeValues": { ":v0": { "S": "DUE#1" } },
        })
    };
    assert_eq!(
        decided("token", "DynamoDB_20120810.Query", query(json!("byDue"), "dueShard")),
        [("dynamodb:Query on things/index/byDue for DUE#1".to_owned(), true)]
    );
    assert_eq!(
        decided("token", "DynamoDB_20120810.Query", query(Value::Null, "pk")),
        [("dynamodb:Query on things for DUE#1".to_owned(), false)]
    );
}

#[test]
fn queues_and_secrets_are_named_as_requests_name_them() {
    let url = |queue: &str| json!({ "QueueUrl": format!("http://127.0.0.1:1/000000000000/{queue}") });
    assert!(decided("token", "AmazonSQS.SendMessageBatch", url("Queue"))[0].1);
    assert!(decided("token", "AmazonSQS.SendMessage", url("Failed"))[0].1, "SAM adds this right for failed events");
    assert!(!decided("token", "AmazonSQS.ReceiveMessage", url("Queue"))[0].1);
    let secret = |id: &str| decided("token", "secretsmanager.GetSecretValue", json!({ "SecretId": id }))[0].1;
    assert!(secret("waypost/local/key") && secret("waypost/local/provider-square"));
    assert!(secret("arn:aws:secretsmanager:us-east-1:000000000000:secret:waypost/local/key-AbC123"));
    assert!(!secret("waypost/local/keys") && !secret("waypost/other/key"));
}

#[test]
fn objects_are_granted_by_bucket_and_key_and_a_denial_wins() {
    let rights = rights(TEMPLATE);
    let token = rights.function("token").expect("declared");
    let decided = |method, path| {
        let asked = accesses(&rights, &s3_request(method, path, "x-id=Any", false)).expect("understood");
        token.decide(&asked[0])
    };
    assert!(matches!(decided("GET", "/files/a%20b/c"), Decision::Allowed(_)));
    assert!(matches!(decided("DELETE", "/files/a"), Decision::Allowed(_)));
    assert_eq!(decided("DELETE", "/files/kept/a"), Decision::Denied);
    assert_eq!(decided("GET", "/other/a"), Decision::NotAllowed);
    let absent = accesses(&rights, &s3_request("GET", "/files/a", "x-id", true)).expect("understood");
    let names: Vec<_> = absent.iter().map(|access| (access.action.as_str(), may(token, access))).collect();
    assert_eq!(names, [("s3:GetObject", true), ("s3:ListBucket", false)]);
}

#[test]
fn an_operation_that_is_not_known_is_an_error() {
    let rights = rights(TEMPLATE);
    for target in ["DynamoDB_20120810.ImportTable", "AmazonSQS.CreateQueue", "secretsmanager.TagResource", "x", ""] {
        let found = accesses(&rights, &json_request(target, json!({})));
        assert!(matches!(found, Err(CallError::Operation(_))), "{target}");
    }
    for (target, body) in [
        ("DynamoDB_20120810.GetItem", json!({})),
        ("DynamoDB_20120810.GetItem", Value::Null),
        ("DynamoDB_20120810.Query", json!({ "TableName": "things", "KeyConditions": {} })),
        ("AmazonSQS.SendMessage", json!({})),
    ] {
        assert!(accesses(&rights, &json_request(target, body.clone())).is_err(), "{target} {body}");
    }
    assert!(accesses(&rights, &s3_request("GET", "/files/a", "acl", false)).is_err());
}

#[test]
fn a_policy_that_is_not_understood_names_its_place() {
    for (from, to, said) in [
        ("ForAllValues:StringLike", "StringLike", "Token: Policies[1] statement 1"),
        ("- !Ref Reading", "- !Ref Table", "Token"),
        ("- !Ref Reading", "- SQSPollerPolicy: {QueueName: a}", "Token"),
        ("- !Ref Reading", "- AmazonDynamoDBFullAccess", "Token"),
        ("!GetAtt Queue.Arn}", "!GetAtt Other.Arn}", "Token: Policies[1] statement 3"),
        ("Action: 's3:*Object'", "NotAction: 's3:*Object'", "Token: Policies[1] statement 5"),
    ] {
        let changed = TEMPLATE.replacen(from, to, 1);
        assert_ne!(changed, TEMPLATE, "{from}");
        let error = read(&changed).expect_err(to).to_string();
        assert_eq!(error, format!("template.yaml: {said}"), "{to}");
    }
}

#[test]
fn lambda_calls_a_mapped_queue_with_the_function_s_role() {
    let mapping = r"
  Mapping:
    Type: AWS::Lambda::EventSourceMapping
    Properties:
      FunctionName: !Ref Token.Alias
      EventSourceArn: !GetAtt Queue.Arn
      BatchSize: 10
      ScalingConfig: {MaximumConcurrency: 2}
";
    let template = Template::parse(&format!("{TEMPLATE}{mapping}")).expect("a template");
    let rights = rights(TEMPLATE);
    let token = rights.function("token").expect("declared");
    let asked = of_mappings(&template).flat_map(|call| accesses(&rights, &call.request).expect("understood"));
    let asked: Vec<_> = asked.map(|access| (access.to_string(), may(token, &access))).collect();
    let on = |action: &str| (format!("sqs:{action} on arn:aws:sqs:us-east-1:000000000000:Queue"), false);
    assert_eq!(asked, ["ReceiveMessage", "DeleteMessage", "GetQueueAttributes"].map(on));
}

#[test]
fn a_grant_is_each_action_on_each_resource_for_each_key() {
    let rights = rights(TEMPLATE);
    let token = rights.function("token").expect("declared");
    let grants: Vec<_> = token.grants().map(|grant| grant.to_string()).collect();
    assert_eq!(grants.len(), 3 + 4 + 4 + 1 + 1 + 2 + 1 + 1, "{grants:#?}");
    assert_eq!(grants[3], "token: dynamodb:GetItem on ${Table.Arn} for KEYS (Reading statement 1)");
    let access = Access::new("dynamodb:BatchGetItem", "arn:aws:dynamodb:us-east-1:000000000000:table/things");
    let access = access.with_keys(vec!["REVOKED".to_owned(), "KEYS".to_owned()]);
    let Decision::Allowed(uses) = token.decide(&access) else { panic!("granted above") };
    let used: Vec<_> =
        uses.iter().map(|part| (token.grant(*part).key, token.keys_for(*part, &access).collect())).collect();
    assert_eq!(used, [(Some("REVOKED".to_owned()), vec!["REVOKED"]), (Some("KEYS".to_owned()), vec!["KEYS"])]);
    assert_eq!(uses.iter().map(|part| token.key_pattern(*part)).collect::<Vec<_>>(), [Some("REVOKED"), Some("KEYS")]);
}

proptest! {
    #[test]
    fn no_request_takes_the_reader_down_and_none_gives_more_than_its_keys(
        operation in "(Get|Put|Update|Delete|BatchGet|BatchWrite)Items?|Query|Transact(Get|Write)Items|ExecuteStatement",
        pk in "(ENT|KEYS|OUTBOX|DLV)#?[a-z]{0,2}",
        member in "Key|Item|Keys|RequestItems|TransactItems|Statement",
    ) {
        let rights = rights(TEMPLATE);
        let token = rights.function("token").expect("declared");
        let body = json!({ "TableName": "things", member: key(&pk) });
        let request = json_request(&format!("DynamoDB_20120810.{operation}"), body);
        for access in accesses(&rights, &request).unwrap_or_default() {
            prop_assert_eq!(access.leading_keys.clone(), Some(vec![pk.clone()]));
            let granted = match access.action.as_str() {
                "dynamodb:GetItem" => pk == "KEYS",
                "dynamodb:PutItem" => pk.starts_with("ENT#") || pk.starts_with("OUTBOX#"),
                _ => false,
            };
            prop_assert_eq!(may(token, &access), granted);
        }
    }
}
