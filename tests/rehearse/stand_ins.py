"""What stands in for the emulator where it does less than AWS: each a function with a name, which docs/operations.md lists
beside what is left for AWS to show.
"""

from typing import Any

from bundle import Template

def rotation_schedule(template: Template) -> tuple[Template, str]:
    """The emulator refuses AWS::SecretsManager::RotationSchedule. Returns the template without it, and the logical id of
    the function that it would call; `rotate` in rehearsal.py calls the function's four steps as Secrets Manager does.
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
    """The emulator ignores the OpenAPI body of an API, so each operation of it becomes a route by API Gateway's own
    calls. Returns how many there are. `resources` has the ARN of each function's alias, by its logical id.
    """
    (definition,) = (
        resource["Properties"]["Body"]
        for resource in template["Resources"].values()
        if resource["Type"] == "AWS::ApiGatewayV2::Api"
    )
    present = {route["RouteKey"] for route in apigateway.get_routes(ApiId=api, MaxResults="500")["Items"]}
    keys = {}
    for path, operations in definition["paths"].items():
        for method, operation in operations.items():
            address = operation["x-amazon-apigateway-integration"]["uri"]["Fn::Sub"]
            alias = address.split("functions/${", 1)[1].split("}", 1)[0]
            keys["$default" if path == "/$default" else f"{method.upper()} {path}"] = resources[alias]
    for key, arn in keys.items():
        if key not in present:
            integration = apigateway.create_integration(
                ApiId=api, IntegrationType="AWS_PROXY", IntegrationUri=arn, PayloadFormatVersion="2.0"
            )
            apigateway.create_route(ApiId=api, RouteKey=key, Target=f"integrations/{integration['IntegrationId']}")
    return len(keys)


def shared_names(first: set[tuple[str, str]], second: set[tuple[str, str]]) -> list[str]:
    """The emulator lets one stack take what belongs to another of the same name, where AWS fails. Returns what is a part
    of both, by type and name.
    """
    return [f"{kind} {name}" for kind, name in sorted(first & second)]
