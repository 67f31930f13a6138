"""Deploys an environment with SAM. Asks its operator once for the parameters without a useful default.

The answers for ENV are stored in samconfig-ENV.yaml, a configuration file of SAM. `make deploy` calls the steps in this order:

    deploy.py ask ENV [--architecture NAME]    writes the file, unless it exists
    deploy.py credentials ENV                  fails without valid AWS credentials
    deploy.py architecture ENV                 prints the processor to build for
    deploy.py deploy ENV [--version NAME]      deploys the built programs, or a version that was deployed before
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import yaml
from samtranslator.yaml_helper import yaml_parse

import releases
from command_line import aws, fail, tool
from existing_table import check_table
from filled_template import with_settings, with_table

ROOT = Path(__file__).resolve().parent.parent
# The parameters to ask for. The defaults of all others suit most environments.
ASKED = ["BaseUrl", "AuthUrl", "AlarmTopicArn"]
# The value of BaseUrl and AuthUrl until API Gateway has assigned an address to the API. The domain
# `invalid` is reserved (RFC 6761).
PRELIMINARY = "https://preliminary.invalid"
# Processors by their number at byte 18 of ELF files.
PROCESSORS = {183: "arm64", 62: "x86_64"}
# Alarms for runs that are due every minute. In a new stack, they show whether the schedules work.
FIRST_RUNS = ["SweepMissingAlarm", "RefreshMissingAlarm"]
FIRST_RUNS_WITHIN = 600
SECONDS_BETWEEN_LOOKS = float(os.environ.get("DEPLOY_SECONDS_BETWEEN_LOOKS", "10"))


def template():
    return yaml_parse((ROOT / "template.yaml").read_text(encoding="utf-8"))


def file_of(environment):
    return Path(f"samconfig-{environment}.yaml").resolve()


def is_allowed(parameter, value):
    """Whether the template's rule for a parameter accepts a value."""
    if "AllowedValues" in parameter:
        return value in [str(allowed) for allowed in parameter["AllowedValues"]]
    return re.fullmatch(parameter.get("AllowedPattern", ".*"), value) is not None


def question(label, explanation, default, allowed):
    print(f"\n{explanation}")
    while True:
        try:
            answer = input(f"{label} [{default}]: ").strip() or default
        except EOFError:
            fail(f"{label} has no answer, so nothing was written; run this again in a terminal")
        if allowed(answer):
            return answer
        print(f"`{answer}` is not a valid value for {label}.")


def ask(environment, architecture):
    """Asks for the parameters of an environment and writes the answers, unless they exist."""
    path, parameters = file_of(environment), template()["Parameters"]
    if not is_allowed(parameters["Environment"], environment):
        fail(f"`{environment}` is not a valid environment name: it must match {parameters['Environment']['AllowedPattern']}")
    if path.exists():
        chosen = answers(environment)["parameters"]["Architecture"]
        if architecture not in (None, chosen):
            fail(f"ARCHITECTURE={architecture}, but {path.name} says Architecture={chosen}; change it there")
        return
    print(f"Your answers are stored in {path.name}; edit the file to change them.")
    stack = question(
        "Stack", "The name of the CloudFormation stack.", f"waypost-{environment}",
        lambda name: re.fullmatch("[A-Za-z][A-Za-z0-9-]{0,127}", name),
    )
    region = question(
        "Region", "The AWS region, such as eu-central-1.",
        os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "",
        lambda name: re.fullmatch("[a-z]{2,}(-[a-z]+)+-[0-9]+", name),
    )
    given = {"Environment": environment, "Architecture": architecture or parameters["Architecture"]["Default"]}
    for name in ASKED:
        parameter, explanation, default = parameters[name], parameters[name]["Description"], str(parameters[name].get("Default", ""))
        if name == "BaseUrl":
            explanation += "\nEmpty for API Gateway's own address, which this program writes into the file after the first deployment."
        if name == "AuthUrl":
            default = given["BaseUrl"]
            explanation += "" if default else "\nEmpty for the address of the API."
        given[name] = question(
            name, explanation, default, lambda answer: (not answer and name in ("BaseUrl", "AuthUrl")) or is_allowed(parameter, answer)
        )
    # The file contains no secret, so its default permissions are sufficient.
    path.write_text(configuration(environment, stack, region, given, parameters), encoding="utf-8")


def configuration(environment, stack, region, given, parameters):
    """The text of the answer file: the given parameters, and the others as comments, each with its description."""
    quoted = json.dumps  # a JSON string is a YAML string
    lines = [
        f"# The settings of `make deploy ENV={environment}`. A parameter that is not listed has the template's default.",
        "version: 0.1",
        "default:",
        "  deploy:",
        "    parameters:",
        f"      stack_name: {quoted(stack)}",
        f"      region: {quoted(region)}",
        "      resolve_s3: true",
        f"      s3_prefix: {quoted(stack)}",
        "      capabilities: CAPABILITY_IAM",
        "      parameter_overrides:",
    ]
    for name, parameter in parameters.items():
        lines.append(f"        # {' '.join(parameter['Description'].split())}")
        if name in given:
            lines.append(f"        - {quoted(f'{name}={given[name]}')}")
        else:
            default = str(parameter["Default"])
            lines.append(f"        # - {quoted(f'{name}={default}')}")
    return "\n".join(lines) + "\n"


def answers(environment, release=None):
    """Stack, region, bucket, table and all parameters of an environment, or those that an earlier release declares."""
    path = file_of(environment)
    if not path.exists():
        fail(f"{path.name} is missing; `make deploy ENV={environment}` asks for its values and writes it")
    try:
        read = yaml.safe_load(path.read_text(encoding="utf-8"))["default"]["deploy"]["parameters"]
        stack, region, overrides = read["stack_name"], read["region"], read["parameter_overrides"]
        bucket, prefix = read.get("s3_bucket"), read.get("s3_prefix", stack)
        overrides = dict(override.split("=", 1) for override in overrides)
    except (yaml.YAMLError, KeyError, TypeError, ValueError, AttributeError) as error:
        fail(f"{path.name} is not in the format that `make deploy` writes: {error}")
    declared = (release or template())["Parameters"]
    # Even a release without this parameter must use the table. Without a line in the file, `None`.
    table = overrides.get("TableName")
    unknown = [name for name in overrides if name not in declared and not (release and name == "TableName")]
    if unknown and release:
        print(f"This version has no parameter {', '.join(unknown)}; the values in {path.name} have no effect on it.")
    elif unknown:
        fail(f"{path.name} sets {', '.join(unknown)}, which template.yaml does not declare")
    if overrides.get("Environment") != environment:
        fail(f"{path.name} is for another environment: its Environment is {overrides.get('Environment')}")
    # Pass all parameters: an omitted one would keep its value in the stack.
    values = {name: overrides.get(name, str(parameter.get("Default", ""))) for name, parameter in declared.items()}
    for name, value in values.items():
        if not is_allowed(declared[name], value) and not (value == "" and name in ("BaseUrl", "AuthUrl")):
            fail(f"{path.name}: `{value}` is not a valid value for {name}. {declared[name]['Description']}")
    return {"stack": stack, "region": region, "bucket": bucket, "prefix": prefix, "table": table, "parameters": values}


def check_programs(architecture):
    """Fails unless every function was built for this processor."""
    functions = [one for one in template()["Resources"].values() if one["Type"] == "AWS::Serverless::Function"]
    for folder in sorted(one["Properties"]["CodeUri"] for one in functions):
        try:
            with open(Path(folder) / "bootstrap", "rb") as program:
                header = program.read(20)
        except OSError as error:
            fail(f"{error.filename} cannot be read ({error.strerror}): run `make build ARCHITECTURE={architecture}`")
        built = PROCESSORS.get(int.from_bytes(header[18:20], "little")) if header[:4] == b"\x7fELF" else None
        if built != architecture:
            fail(f"{folder} was built for {built}, but the stack is for {architecture}: run `make build ARCHITECTURE={architecture}`")
        # SAM uploads the whole folder.
        if stray := [entry.name for entry in Path(folder).iterdir() if entry.name != "bootstrap"]:
            fail(f"{folder} is the function's package, and {', '.join(sorted(stray))} does not belong in it: remove it")


def check_credentials(environment):
    """Fails without valid AWS credentials, before the long build."""
    caller = aws(answers(environment)["region"], "sts", "get-caller-identity")
    print(f"Deploying to the account {caller['Account']} as {caller['Arn']}.")


def described(stack, region):
    found = aws(region, "cloudformation", "describe-stacks", "--stack-name", stack)
    return found and found["Stacks"][0]


def parameters_of(found):
    """The parameters of a stack, as CloudFormation describes it."""
    return {one["ParameterKey"]: one["ParameterValue"] for one in found.get("Parameters", [])}


def check_environment(environment, stack, found):
    """Fails unless an existing stack belongs to this environment: the names of its secrets and logs would change."""
    # A stack in this state has no parameters yet.
    if found is None or found["StackStatus"] == "REVIEW_IN_PROGRESS":
        return
    owner = parameters_of(found).get("Environment")
    if owner != environment:
        belongs = f"belongs to the environment {owner}" if owner else "is not a deployment of this service"
        fail(f"the stack {stack} {belongs}: correct stack_name in {file_of(environment).name}")


def check_table_choice(environment, read, before):
    """Fails if the stack uses another table than its own, and the answers do not mention any."""
    present = before.get("TableName")
    if present and read["table"] is None:
        name = file_of(environment).name
        fail(
            f"the stack {read['stack']} uses the table {present}, but {name} has no TableName, so the service would return to the stack's "
            f'own table. Add the line `- "TableName={present}"` below parameter_overrides to keep the table, or `- "TableName="` to return'
        )


def is_new(stack, region, found):
    """Whether the stack does not exist yet. Removes the empty stack that a failed first deployment left."""
    status = found and found["StackStatus"]
    if status == "ROLLBACK_COMPLETE":
        print(f"The first deployment of {stack} failed and was rolled back. The empty stack is removed before the next attempt.")
        aws(region, "cloudformation", "delete-stack", "--stack-name", stack)
        aws(region, "cloudformation", "wait", "stack-delete-complete", "--stack-name", stack)
        return True
    if status in ("ROLLBACK_FAILED", "CREATE_FAILED", "DELETE_FAILED"):
        fail(f"the stack {stack} is {status}: see `A first deployment that fails` in docs/deploy.md")
    if status == "UPDATE_ROLLBACK_FAILED":
        fail(f"the stack {stack} is {status}: see `Updating` in docs/deploy.md")
    return status in (None, "REVIEW_IN_PROGRESS")


def write_template(environment, parameters, release):
    """Writes a release's template with its values for SAM, and returns its path."""
    path = Path("target", f"template-{environment}.json").resolve()
    path.write_text(json.dumps(with_settings(release, parameters), indent=1), encoding="utf-8")
    return path


def sam(environment, parameters, release):
    # An empty value has to be quoted.
    overrides = [f"{name}={value}" if value else f'{name}=""' for name, value in parameters.items()]
    deployed = subprocess.run([
        # The pinned SAM is in the folder of the Python that runs this.
        tool("sam", Path(sys.executable).parent), "deploy",
        "--template-file", str(write_template(environment, parameters, release)), "--config-file", str(file_of(environment)),
        "--no-confirm-changeset", "--no-fail-on-empty-changeset", "--parameter-overrides", *overrides,
    ])
    if deployed.returncode:
        sys.exit(deployed.returncode)


def put_address(environment, endpoint):
    """Writes the API's own address into the answers that have none."""
    path = file_of(environment)
    text = path.read_text(encoding="utf-8")
    changed = re.sub(r'(?m)^(\s*- ["\']?(?:BaseUrl|AuthUrl)=)(["\']?)$', rf"\g<1>{endpoint}\g<2>", text)
    path.write_text(changed, encoding="utf-8")


def wait_for_first_runs(stack, region):
    """Waits until the schedules have run, so that the alarms for missing runs send no notification in a new stack."""
    print("Waiting for the schedules' first runs.")
    end = time.monotonic() + FIRST_RUNS_WITHIN
    while True:
        alarms = aws(region, "cloudwatch", "describe-alarms", "--alarm-name-prefix", f"{stack}-")["MetricAlarms"]
        silent = [
            name for name in FIRST_RUNS
            if not any(alarm["AlarmName"].startswith(f"{stack}-{name}-") and alarm["StateValue"] == "OK" for alarm in alarms)
        ]
        if not silent:
            return
        if time.monotonic() > end:
            fail(
                f"ten minutes after the deployment, {' and '.join(silent)} of {stack} are not OK: check the schedules in EventBridge"
                " Scheduler. The alarms send no notifications yet; run the same command again when the schedules run"
            )
        time.sleep(SECONDS_BETWEEN_LOOKS)


def deploy(environment, version):
    read = answers(environment)
    stack, region = read["stack"], read["region"]
    if version:
        release = releases.fetch(environment, read, version)
        deployed = version
        read = answers(environment, release)
    else:
        check_programs(read["parameters"]["Architecture"])
        # Read the version first: another commit may be checked out during the deployment, which
        # takes several minutes.
        deployed = releases.version_of(template())
        release = releases.package(environment, read, template())
    release["Outputs"]["Version"] = {"Description": "The deployed version's name.", "Value": deployed}
    parameters = read["parameters"]
    if read["table"]:
        check_table(read["table"], region, environment, release)
        release = with_table(release, read["table"])
    found = described(stack, region)
    check_environment(environment, stack, found)
    before = {} if is_new(stack, region, found) else parameters_of(found)
    check_table_choice(environment, read, before)
    # A stack without an alarm topic is new, or its first deployment ended before its schedules had run.
    first = dict(parameters)
    if not before.get("AlarmTopicArn"):
        first["AlarmTopicArn"] = ""
    for name in ("BaseUrl", "AuthUrl"):
        first[name] = parameters[name] or before.get(name, PRELIMINARY)
    sam(environment, first, release)
    if not parameters["BaseUrl"] or not parameters["AuthUrl"]:
        outputs = {one["OutputKey"]: one["OutputValue"] for one in described(stack, region)["Outputs"]}
        put_address(environment, outputs["ApiEndpoint"])
        parameters = answers(environment, release)["parameters"]
    if parameters["AlarmTopicArn"] != first["AlarmTopicArn"]:
        wait_for_first_runs(stack, region)
    if parameters != first:
        sam(environment, parameters, release)
    if not version:
        releases.store(environment, read, deployed)
    # Last, since the deployment is complete even if the operator has no right to this.
    aws(region, "cloudformation", "update-termination-protection", "--stack-name", stack, "--enable-termination-protection")


def main():
    parser = argparse.ArgumentParser(description="Deploys an environment; `make deploy` calls the steps in order.")
    parser.add_argument("step", choices=["ask", "credentials", "architecture", "deploy"])
    parser.add_argument("environment")
    parser.add_argument("--architecture", choices=sorted(PROCESSORS.values()))
    parser.add_argument("--version")
    arguments = parser.parse_args()
    if arguments.step == "ask":
        ask(arguments.environment, arguments.architecture)
    elif arguments.step == "credentials":
        check_credentials(arguments.environment)
    elif arguments.step == "architecture":
        print(answers(arguments.environment)["parameters"]["Architecture"])
    else:
        deploy(arguments.environment, arguments.version)


if __name__ == "__main__":
    main()
