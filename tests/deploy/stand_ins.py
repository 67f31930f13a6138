"""Replacements for features of AWS that the emulator lacks, one function each. docs/deploy.md lists the features that
only AWS can test, under "Check first on AWS".
"""

import threading
from typing import Any

import table
from bundle import Template
from emulator import Emulator


def embedded_table(emulated: Any, embedded: Any, name: str) -> None:
    """The emulator's table checks a condition and writes in two separate steps, so the functions and the operator's
    program use the project's embedded table. This creates the table there that CloudFormation created in the emulator.
    The arguments are clients of DynamoDB and the table's name.
    """
    table.deploy(emulated, embedded, name)


def restored_items(emulated: Any, embedded: Any, source: str, target: str) -> None:
    """The emulator has the tables' definitions, but no items or earlier points in time. This creates the restored table
    in the project's embedded one, with a copy of the current items. The first two arguments are as above.
    """
    table.deploy(emulated, embedded, target)
    for page in embedded.get_paginator("scan").paginate(TableName=source):
        for item in page["Items"]:
            embedded.put_item(TableName=target, Item=item)


def table_of_region(template: Template, name: str) -> Template:
    """The emulator gives the tables of identical stacks in two regions the same name, where AWS adds random characters,
    and the project's embedded table has no regions. Returns the template with this name for the stack's table.
    """
    table = template["Resources"]["Table"]
    named = table | {"Properties": table["Properties"] | {"TableName": name}}
    return template | {"Resources": template["Resources"] | {"Table": named}}


def table_from_another_region(emulated: Any, own: str, target: str) -> None:
    """The emulator cannot restore a table from another region. This creates the target there, with the definition of
    the stack's own table and, as a restored table, without its settings. The first argument is a client of DynamoDB in
    the target's region.
    """
    emulated.restore_table_to_point_in_time(SourceTableName=own, TargetTableName=target, UseLatestRestorableTime=True)


def reserved_concurrency(functions: Any, names: list[str], alias: str) -> None:
    """The emulator limits the concurrency only of a function's latest code, not of its versions. This asserts that
    these functions have a limit, and makes their alias invoke the latest code. The first argument is a client of
    Lambda.
    """
    for name in names:
        assert "ReservedConcurrentExecutions" in functions.get_function_concurrency(FunctionName=name), f"{name} has no limit"
        functions.update_alias(FunctionName=name, Name=alias, FunctionVersion="$LATEST")


def rotation_schedule(template: Template) -> tuple[Template, str]:
    """The emulator refuses AWS::SecretsManager::RotationSchedule. Returns the template without it, and the logical id of its
    function; `rotate` in deploy_test.py calls the function's four steps as Secrets Manager does.
    """
    kinds = {name: resource["Type"] for name, resource in template["Resources"].items()}
    schedules = [name for name, kind in kinds.items() if kind == "AWS::SecretsManager::RotationSchedule"]
    (schedule,) = schedules
    function: str = template["Resources"][schedule]["Properties"]["RotationLambdaARN"]["Fn::GetAtt"][0]
    parts = template["Resources"].values()
    permissions = [part["Properties"] for part in parts if part["Type"] == "AWS::Lambda::Permission"]
    of_secrets_manager = [each for each in permissions if each["Principal"] == "secretsmanager.amazonaws.com"]
    allowed = [each for each in of_secrets_manager if each["FunctionName"] == {"Ref": function}]
    assert allowed, f"Secrets Manager may not call {function}"
    kept = {name: resource for name, resource in template["Resources"].items() if name != schedule}
    return template | {"Resources": kept}, function


def metric_math(template: Template) -> Template:
    """The emulator refuses alarms on an expression of several metrics. Returns the template without them."""
    resources = template["Resources"].items()
    kept = {name: resource for name, resource in resources if not _is_of_several_metrics(resource)}
    return template | {"Resources": kept}


def _is_of_several_metrics(resource: dict[str, Any]) -> bool:
    return resource["Type"] == "AWS::CloudWatch::Alarm" and "Metrics" in resource["Properties"]


def routes(apigateway: Any, api: str, template: Template, resources: dict[str, str]) -> int:
    """The emulator ignores the OpenAPI body of an API, so this creates a route for each operation by API Gateway's calls.
    Returns the number of routes. `resources` has the ARN of each function's alias, by its logical id.
    """
    (definition,) = (
        resource["Properties"]["Body"]
        for resource in template["Resources"].values()
        if resource["Type"] == "AWS::ApiGatewayV2::Api"
    )
    present = {route["RouteKey"]: route["RouteId"] for route in apigateway.get_routes(ApiId=api, MaxResults="500")["Items"]}
    keys = {}
    for path, operations in definition["paths"].items():
        for method, operation in operations.items():
            address = operation["x-amazon-apigateway-integration"]["uri"]["Fn::Sub"]
            target = address.split("functions/${", 1)[1].split("}", 1)[0]
            keys["$default" if path == "/$default" else f"{method.upper()} {path}"] = resources[target]
    for key, function in keys.items():
        integration = apigateway.create_integration(
            ApiId=api, IntegrationType="AWS_PROXY", IntegrationUri=function, PayloadFormatVersion="2.0"
        )
        target = f"integrations/{integration['IntegrationId']}"
        if key in present:
            apigateway.update_route(ApiId=api, RouteId=present[key], Target=target)
        else:
            apigateway.create_route(ApiId=api, RouteKey=key, Target=target)
    for key, route in present.items():
        if key not in keys:
            apigateway.delete_route(ApiId=api, RouteId=route)
    return len(keys)


def shared_names(first: set[tuple[str, str]], second: set[tuple[str, str]]) -> list[str]:
    """The emulator lets a stack take over another stack's resource of the same name, where AWS would fail. Returns the
    resources of both stacks, by type and name.
    """
    return [f"{kind} {name}" for kind, name in sorted(first & second)]


class FrequentSchedules:
    """In a local bundle, schedules run every half second; on AWS the most frequent ones run once a minute, which is too
    slow for hundreds of tests. While they run, this invokes the functions with a schedule of one minute every half
    second, in addition to the emulator's schedules, which a separate step tests.
    """

    def __init__(self, emulator: Emulator, template: Template, resources: dict[str, str]) -> None:
        self._ended = threading.Event()
        schedules = [part["Properties"] for part in template["Resources"].values() if part["Type"] == "AWS::Scheduler::Schedule"]
        targets = [schedule["Target"] for schedule in schedules if schedule["ScheduleExpression"] == "rate(1 minute)"]
        assert targets, "the template has no schedule of one minute"
        self._threads = [
            threading.Thread(target=self._run, args=(emulator, resources[target["Arn"]["Ref"]], target))
            for target in targets
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, emulator: Emulator, function: str, target: dict[str, Any]) -> None:
        client = emulator.client("lambda")
        payload = target.get("Input", "{}").encode()
        while not self._ended.wait(0.5):
            try:
                client.invoke(FunctionName=function, Payload=payload)["Payload"].read()
            except Exception:  # noqa: BLE001: the next run follows, and a test that needs this one fails
                continue

    def stop(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(5)
