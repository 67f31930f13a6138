"""Deploys an environment: asks its operator once for the parameters without a useful default, and lets SAM deploy.

The answers for ENV are stored in samconfig-ENV.yaml, a configuration file of SAM. `make deploy` calls the steps in this order:

    deploy.py ask ENV [--architecture NAME]    writes the file, unless it exists
    deploy.py credentials ENV                  fails without valid AWS credentials
    deploy.py architecture ENV                 prints the processor to build for
    deploy.py deploy ENV                       deploys the built programs
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import yaml
from samtranslator.yaml_helper import yaml_parse

ROOT = Path(__file__).resolve().parent.parent
# The parameters to ask for; all others have a default that suits most environments.
ASKED = ["BaseUrl", "AuthUrl", "AlarmTopicArn"]
# The value of BaseUrl and AuthUrl until API Gateway has given the API an address. The domain `invalid` is reserved (RFC 6761).
PRELIMINARY = "https://preliminary.invalid"
# The processors of ELF files, by the number at byte 18.
PROCESSORS = {183: "arm64", 62: "x86_64"}
# Alarms for missing runs of every minute: in a new stack, they show whether the schedules work.
FIRST_RUNS = ["SweepMissingAlarm", "RefreshMissingAlarm"]
FIRST_RUNS_WITHIN = 600
SECONDS_BETWEEN_LOOKS = float(os.environ.get("DEPLOY_SECONDS_BETWEEN_LOOKS", "10"))


def fail(sentence):
    sys.exit(f"deploy: {sentence}")


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
            fail(f"{label} was not answered, and nothing was written; run this again in a terminal")
        if allowed(answer):
            return answer
        print(f"{label} cannot be `{answer}`.")


def ask(environment, architecture):
    """Asks for the parameters of an environment and writes the answers, unless they exist."""
    path, parameters = file_of(environment), template()["Parameters"]
    if not is_allowed(parameters["Environment"], environment):
        fail(f"an environment cannot be called `{environment}`: {parameters['Environment']['AllowedPattern']}")
    if path.exists():
        chosen = answers(environment)["parameters"]["Architecture"]
        if architecture not in (None, chosen):
            fail(f"ARCHITECTURE={architecture}, but {path.name} says Architecture={chosen}; change it there")
        return
    print(f"The answers are kept in {path.name}, where they can be changed.")
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
    # The file holds no secret, so its default permissions are sufficient.
    path.write_text(configuration(environment, stack, region, given, parameters), encoding="utf-8")


def configuration(environment, stack, region, given, parameters):
    """The text of the answer file: the given parameters, and the others as comments, each with its description."""
    quoted = json.dumps  # a string of JSON is one of YAML
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


def answers(environment):
    """Stack, region and all parameters of an environment."""
    path = file_of(environment)
    if not path.exists():
        fail(f"{path.name} is missing; `make deploy ENV={environment}` asks for its values and writes it")
    try:
        read = yaml.safe_load(path.read_text(encoding="utf-8"))["default"]["deploy"]["parameters"]
        stack, region, overrides = read["stack_name"], read["region"], read["parameter_overrides"]
        overrides = dict(override.split("=", 1) for override in overrides)
    except (yaml.YAMLError, KeyError, TypeError, ValueError, AttributeError) as error:
        fail(f"{path.name} is not as `make deploy` writes it: {error}")
    declared = template()["Parameters"]
    unknown = [name for name in overrides if name not in declared]
    if unknown:
        fail(f"{path.name} names {', '.join(unknown)}, which template.yaml does not declare")
    if overrides.get("Environment") != environment:
        fail(f"{path.name} is for another environment: its Environment is {overrides.get('Environment')}")
    # All parameters: SAM would leave an omitted parameter as it is in the stack.
    values = {name: overrides.get(name, str(parameter.get("Default", ""))) for name, parameter in declared.items()}
    for name, value in values.items():
        if not is_allowed(declared[name], value) and not (value == "" and name in ("BaseUrl", "AuthUrl")):
            fail(f"{path.name}: {name} cannot be `{value}`. {declared[name]['Description']}")
    return {"stack": stack, "region": region, "parameters": values}


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
            fail(f"{folder} was built for {built}, and the stack is for {architecture}: run `make build ARCHITECTURE={architecture}`")
        # SAM uploads the whole folder.
        if stray := [entry.name for entry in Path(folder).iterdir() if entry.name != "bootstrap"]:
            fail(f"{folder} is the function's package, and {', '.join(sorted(stray))} is no part of it: remove it")


def tool(name, *folders):
    """The path of a program, in these folders or in the operator's PATH."""
    path = os.pathsep.join([*map(str, folders), os.environ.get("PATH", "")])
    return shutil.which(name, path=path) or fail(f"{name} is not installed; docs/deploy.md lists the requirements of a deployment")


def aws(region, *arguments):
    """The output of the AWS command line, or None if the stack does not exist."""
    called = subprocess.run(
        [tool("aws"), *arguments, "--region", region, "--output", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    if called.returncode and "does not exist" in called.stderr:
        return None
    if called.returncode:
        fail(f"aws {' '.join(arguments[:2])}: {called.stderr.strip()}")
    return json.loads(called.stdout or "null")


def check_credentials(environment):
    """Fails without valid AWS credentials, before a build, which takes long."""
    caller = aws(answers(environment)["region"], "sts", "get-caller-identity")
    print(f"Deploying to the account {caller['Account']} as {caller['Arn']}.")


def described(stack, region):
    found = aws(region, "cloudformation", "describe-stacks", "--stack-name", stack)
    return found and found["Stacks"][0]


def is_new(stack, region):
    """Whether the stack does not exist yet. Removes the empty stack that a failed first deployment left."""
    found = described(stack, region)
    status = found and found["StackStatus"]
    if status == "ROLLBACK_COMPLETE":
        print(f"The first deployment of {stack} has failed and was rolled back. The empty stack is removed before the next attempt.")
        aws(region, "cloudformation", "delete-stack", "--stack-name", stack)
        aws(region, "cloudformation", "wait", "stack-delete-complete", "--stack-name", stack)
        return True
    if status in ("ROLLBACK_FAILED", "CREATE_FAILED", "DELETE_FAILED"):
        fail(f"the stack {stack} is {status}: docs/deploy.md says what to do, in `A first deployment that fails`")
    return status in (None, "REVIEW_IN_PROGRESS")


def filled(value, parameters):
    """A value of the template with the parameters' values in place of references to them."""
    if isinstance(value, dict):
        if set(value) == {"Ref"} and value["Ref"] in parameters:
            return str(parameters[value["Ref"]])
        return {name: filled(part, parameters) for name, part in value.items()}
    if isinstance(value, list):
        return [filled(part, parameters) for part in value]
    return value


def with_settings(template, parameters):
    """The template with the parameters' values in the functions' environments.

    SAM publishes a version of a function when its text in the template changes. With a reference to a parameter the text would
    stay the same, and the alias would stay at the version with the old value
    (https://github.com/aws/serverless-application-model/issues/3820).
    """
    functions = [one["Properties"] for one in template["Resources"].values() if one["Type"] == "AWS::Serverless::Function"]
    for function in [template["Globals"]["Function"], *functions]:
        if "Environment" in function:
            function["Environment"] = filled(function["Environment"], parameters)
    return template


def write_template(environment, parameters):
    """Writes the template for SAM, and returns its path."""
    filled_in = with_settings(template(), parameters)
    for one in filled_in["Resources"].values():
        if one["Type"] == "AWS::Serverless::Function":
            one["Properties"]["CodeUri"] = str(Path(one["Properties"]["CodeUri"]).resolve())
    path = Path("target", f"template-{environment}.json").resolve()
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(filled_in, indent=1), encoding="utf-8")
    return path


def sam(environment, parameters):
    # An empty value has to be quoted.
    overrides = [f"{name}={value}" if value else f'{name}=""' for name, value in parameters.items()]
    deployed = subprocess.run([
        # The pinned SAM is in the folder of the Python that runs this.
        tool("sam", Path(sys.executable).parent), "deploy",
        "--template-file", str(write_template(environment, parameters)), "--config-file", str(file_of(environment)),
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
    """Waits until the schedules have run, so that the alarms for missing runs do not notify in a new stack."""
    print("Waiting for the first runs of the schedules.")
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


def deploy(environment):
    read = answers(environment)
    stack, region, parameters = read["stack"], read["region"], read["parameters"]
    check_programs(parameters["Architecture"])
    found = None if is_new(stack, region) else described(stack, region)
    # A stack without the configured topic is new, or its first deployment ended before its schedules had run.
    before = {one["ParameterKey"]: one["ParameterValue"] for one in found.get("Parameters", [])} if found else {}
    first = dict(parameters)
    if not before.get("AlarmTopicArn"):
        first["AlarmTopicArn"] = ""
    for name in ("BaseUrl", "AuthUrl"):
        first[name] = parameters[name] or before.get(name, PRELIMINARY)
    sam(environment, first)
    if not parameters["BaseUrl"] or not parameters["AuthUrl"]:
        outputs = {one["OutputKey"]: one["OutputValue"] for one in described(stack, region)["Outputs"]}
        put_address(environment, outputs["ApiEndpoint"])
        parameters = answers(environment)["parameters"]
    if parameters["AlarmTopicArn"] != first["AlarmTopicArn"]:
        wait_for_first_runs(stack, region)
    if parameters != first:
        sam(environment, parameters)


def main():
    parser = argparse.ArgumentParser(description="Deploys an environment; `make deploy` calls the steps in their order.")
    parser.add_argument("step", choices=["ask", "credentials", "architecture", "deploy"])
    parser.add_argument("environment")
    parser.add_argument("--architecture", choices=sorted(PROCESSORS.values()))
    arguments = parser.parse_args()
    if arguments.step == "ask":
        ask(arguments.environment, arguments.architecture)
    elif arguments.step == "credentials":
        check_credentials(arguments.environment)
    elif arguments.step == "architecture":
        print(answers(arguments.environment)["parameters"]["Architecture"])
    else:
        deploy(arguments.environment)


if __name__ == "__main__":
    main()
