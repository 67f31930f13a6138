"""Expands template.yaml as SAM does, and prints the policies of each function's role, or all resources.

Standard input: {"template": "<path>", "parameters": {…}}; omitted parameters have their defaults. Standard output:
{"<function's logical id>": {"managed": [...], "statements": [...]}}, where "managed" has the names of AWS managed policies, and
"statements" the statements of all others. With "whole": true in the input, the output is the expanded template.
"""

import json
import logging
import sys

import boto3
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator
from samtranslator.yaml_helper import yaml_parse


def statements(document):
    found = document["Statement"]
    return found if isinstance(found, list) else [found]


def policies(role, resources):
    managed, granted = [], []
    for policy in role.get("ManagedPolicyArns", []):
        if isinstance(policy, str):
            managed.append(policy.rsplit("/", 1)[-1])
        else:
            granted += statements(resources[policy["Ref"]]["Properties"]["PolicyDocument"])
    for policy in role.get("Policies", []):
        granted += statements(policy["PolicyDocument"])
    return {"managed": managed, "statements": granted}


# For each function, this logger reports that a feature toggle for AWS's internal service is not
# set.
logging.getLogger("samtranslator.feature_toggle").setLevel(logging.ERROR)
request = json.load(sys.stdin)
with open(request["template"], encoding="utf-8") as file:
    # Parsing YAML takes seconds, unlike JSON.
    template = json.load(file) if file.name.endswith(".json") else json.loads(json.dumps(yaml_parse(file.read())))
for resource in template["Resources"].values():
    if resource["Type"] == "AWS::Serverless::Function":
        # In a deployment, a function's code is in a bucket.
        resource["Properties"]["CodeUri"] = "s3://bucket/code"
parameters = {name: parameter.get("Default", "any") for name, parameter in template["Parameters"].items()}
parameters |= request.get("parameters", {})
session = boto3.session.Session(region_name="us-east-1")
expanded = Translator({}, Parser(), boto_session=session).translate(template, parameters)
if request.get("whole"):
    print(json.dumps(expanded))
    sys.exit()
resources = expanded["Resources"]
functions = {name: resource["Properties"] for name, resource in resources.items() if resource["Type"] == "AWS::Lambda::Function"}
roles = {name: resources[function["Role"]["Fn::GetAtt"][0]]["Properties"] for name, function in functions.items()}
print(json.dumps({name: policies(role, resources) for name, role in roles.items()}))
