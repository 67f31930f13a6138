"""A stack: its deployment by CloudFormation, and its resources."""

import json
import time
from typing import Any

import botocore.exceptions

import stand_ins
from bundle import Bundle, Template, architecture
from emulator import REGION, Emulator

# The alias that every function has.
ALIAS = "live"
VERSION = "AWS::Lambda::Version"
# Types of resources whose names belong to another part of the stack.
WITHIN = ("AWS::ApiGatewayV2::Stage",)


class Stack:
    """The stack of one environment."""

    def __init__(self, emulator: Emulator, bundle: Bundle, environment: str, region: str = REGION) -> None:
        self.emulator = emulator
        self.environment = environment
        self.region = region
        # These are the names in docs/deploy.md and docs/run.md.
        self.name = "waypost" if environment == "production" else f"waypost-{environment}"
        self.bundle = bundle
        self._formation = self.client("cloudformation")
        self._lambda = self.client("lambda")
        self.parameters = {
            "Environment": environment,
            "BaseUrl": f"https://{environment}.example",
            "AuthUrl": f"https://auth.{environment}.example",
            "Architecture": architecture(),
            # The deployment test's receiver listens on loopback.
            "DeliveryAllowedNetworks": "127.0.0.1/32",
            "DeliveryAllowHttp": "true",
            # The canary would call the public URL, which does not exist here.
            "Canary": "false",
            # The emulator lacks CodeDeploy, so an alias moves to the new version immediately.
            "Rollout": "AllAtOnce",
        }

    def client(self, service: str) -> Any:
        """A client for one of the emulator's services, in the region of the stack."""
        return self.emulator.client(service, region=self.region)

    def template(self) -> Template:
        """The project's template as CloudFormation gets it, with the current parameters."""
        return self.bundle.expanded(self.parameters)

    def create(self, template: Template) -> str:
        """Creates the stack, as `sam deploy` does. Returns the final status."""
        self._formation.create_stack(StackName=self.name, **self._described(template), OnFailure="ROLLBACK")
        status = self._settled()
        if status == "CREATE_COMPLETE":
            self._complete(template)
        return status

    def update(self, template: Template) -> str | None:
        """Updates the stack. Returns the final status; None if there was no change."""
        try:
            self._formation.update_stack(StackName=self.name, **self._described(template))
        except botocore.exceptions.ClientError as error:
            if "No updates are to be performed" in error.response["Error"]["Message"]:
                return None
            raise
        status = self._settled()
        self._complete(template)
        return status

    def _complete(self, template: Template) -> None:
        """Performs the parts of a deployment that the emulator omits."""
        table, emulator = self.resources()["Table"], self.emulator
        stand_ins.embedded_table(self.client("dynamodb"), emulator.client("dynamodb", emulator.table.endpoint), table)
        self.route(template)

    def delete(self) -> None:
        """Removes the stack, except the resources that the template retains."""
        self._formation.delete_stack(StackName=self.name)
        self.settle_deletion()

    def settle_deletion(self) -> None:
        """Waits until its removal has ended."""
        while self.status() not in (None, "DELETE_COMPLETE"):
            assert self.status() != "DELETE_FAILED", self.failures()
            time.sleep(0.2)

    def _described(self, template: Template) -> dict[str, Any]:
        template, _ = stand_ins.rotation_schedule(template)
        template = stand_ins.metric_math(template)
        if self.region != REGION:
            template = stand_ins.table_of_region(template, f"{self.name}-Table-{self.region}")
        key = self.bundle.publish(json.dumps(template))
        return {
            "TemplateURL": f"{self.emulator.endpoint}/{self.bundle.bucket}/{key}",
            "Parameters": [
                {"ParameterKey": name, "ParameterValue": value} for name, value in self.parameters.items()
            ],
            "Capabilities": ["CAPABILITY_IAM"],
        }

    def status(self) -> str | None:
        """The stack's status; None if it does not exist."""
        try:
            status: str = self._formation.describe_stacks(StackName=self.name)["Stacks"][0]["StackStatus"]
        except botocore.exceptions.ClientError:
            return None
        return status

    def _settled(self) -> str:
        while (status := self.status()) is not None and status.endswith("_IN_PROGRESS"):
            time.sleep(0.2)
        return status or "DELETE_COMPLETE"

    def failures(self) -> str:
        """Which resources failed, and why."""
        pages = self._formation.get_paginator("describe_stack_events").paginate(StackName=self.name)
        return "; ".join(
            f"{event['LogicalResourceId']}: {event.get('ResourceStatusReason', 'no reason')}"
            for page in pages
            for event in page["StackEvents"]
            if event["ResourceStatus"].endswith("_FAILED")
        )

    def _summaries(self) -> list[dict[str, Any]]:
        pages = self._formation.get_paginator("list_stack_resources").paginate(StackName=self.name)
        return [resource for page in pages for resource in page["StackResourceSummaries"]]

    def resources(self) -> dict[str, str]:
        """The names of its resources, by logical id."""
        return {resource["LogicalResourceId"]: resource["PhysicalResourceId"] for resource in self._summaries()}

    def versions(self) -> set[str]:
        """The versions of its functions."""
        kinds = {resource["PhysicalResourceId"]: resource["ResourceType"] for resource in self._summaries()}
        return {name for name, kind in kinds.items() if kind == VERSION}

    def names(self) -> set[tuple[str, str]]:
        """The types and names of its resources, without names within another resource, such as an API's stages."""
        return {
            (resource["ResourceType"], resource["PhysicalResourceId"])
            for resource in self._summaries()
            if resource["ResourceType"] not in WITHIN
        }

    def outputs(self) -> dict[str, str]:
        """The stack's outputs."""
        outputs = self._formation.describe_stacks(StackName=self.name)["Stacks"][0]["Outputs"]
        return {output["OutputKey"]: output["OutputValue"] for output in outputs}

    def route(self, template: Template) -> int:
        """Creates the API's routes; returns their number."""
        resources = self.resources()
        return stand_ins.routes(self.client("apigatewayv2"), resources["Api"], template, resources)

    def variables(self, logical_id: str) -> dict[str, str]:
        """The environment of a function's version behind the alias."""
        name = self.resources()[logical_id]
        configuration = self._lambda.get_function_configuration(FunctionName=name, Qualifier=ALIAS)
        variables: dict[str, str] = configuration["Environment"]["Variables"]
        return variables

    def invoke(self, logical_id: str, event: dict[str, Any]) -> None:
        """Invokes a function; asserts success."""
        answer = self._lambda.invoke(FunctionName=self.resources()[logical_id], Payload=json.dumps(event).encode())
        text = answer["Payload"].read().decode()
        assert "FunctionError" not in answer, f"{logical_id} failed: {text}"

    def logs(self) -> str:
        """The last error lines of its functions, to explain a failed step."""
        logs = self.client("logs")
        group = f"/waypost/{self.environment}/functions"
        try:
            events = logs.filter_log_events(logGroupName=group)["events"]
        except botocore.exceptions.ClientError:
            return ""
        lines = [event["message"].strip() for event in events if '"level":"ERROR"' in event["message"]]
        return "\n".join(lines[-5:])
