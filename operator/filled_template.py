"""Replaces references in the template that SAM or CloudFormation cannot use."""

import copy

# The address of a table in the stack's account and region.
ARN = "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/"


def with_settings(template, parameters):
    """The template with the parameters' values in the functions' environments.

    SAM publishes a version of a function when its text in the template changes. With a reference to a parameter, the
    text would stay the same, and the alias would remain at the version with the old value
    (https://github.com/aws/serverless-application-model/issues/3820).
    """
    template = copy.deepcopy(template)
    functions = [one["Properties"] for one in template["Resources"].values() if one["Type"] == "AWS::Serverless::Function"]
    for function in [template["Globals"]["Function"], *functions]:
        if "Environment" in function:
            function["Environment"] = filled(function["Environment"], parameters)
    return template


def filled(value, parameters):
    """A value of the template with the parameters' values in place of references to them."""
    if isinstance(value, dict):
        if set(value) == {"Ref"} and value["Ref"] in parameters:
            return str(parameters[value["Ref"]])
        return {name: filled(part, parameters) for name, part in value.items()}
    if isinstance(value, list):
        return [filled(part, parameters) for part in value]
    return value


def with_table(template, name):
    """The template with this table in every right, variable, alarm and output, in place of the stack's own table, which
    is kept. Without a name, the template as it is.

    CloudFormation has no variables: an expression with a condition at each of the hundred references would make the
    functions' rights hard to read.
    """
    if not name:
        return template
    resources = {id: part if id == "Table" else referring(part, name) for id, part in template["Resources"].items()}
    rest = {part: referring(template[part], name) for part in ("Globals", "Outputs")}
    return template | rest | {"Resources": resources}


def referring(value, name):
    """A value of the template with references to another table."""
    if value == {"Ref": "Table"}:
        return name
    if value == {"Fn::GetAtt": ["Table", "Arn"]} or value == {"Fn::GetAtt": "Table.Arn"}:
        return {"Fn::Sub": ARN + name}
    if isinstance(value, dict):
        return {member: referring(part, name) for member, part in value.items()}
    if isinstance(value, list):
        return [referring(part, name) for part in value]
    if isinstance(value, str):
        return value.replace("${Table.Arn}", ARN + name).replace("${Table}", name)
    return value
