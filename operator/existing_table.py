"""Checks an existing table in place of the stack's own, such as a restored one. CloudFormation does not manage it, so
its environment, keys, indexes and settings are compared with the template's before each deployment.
"""

from command_line import aws, fail

# The tag with the environment's name. Only this tag distinguishes environments' tables. A restored
# table has no tags.
TAG = "waypost:environment"


def check_table(name, region, environment, template):
    """Fails unless the table belongs to this environment and matches the table that the template declares."""
    table = aws(region, "dynamodb", "describe-table", "--table-name", name)
    tags = aws(region, "dynamodb", "list-tags-of-resource", "--resource-arn", table["Table"]["TableArn"])
    owner = environment_of(tags)
    if owner not in (None, environment):
        fail(
            f"the table {name} belongs to the environment {owner} according to its tag {TAG}, not to {environment}: correct TableName in "
            f"samconfig-{environment}.yaml"
        )
    expiry = aws(region, "dynamodb", "describe-time-to-live", "--table-name", name)
    backups = aws(region, "dynamodb", "describe-continuous-backups", "--table-name", name)
    faults = faults_of(table, expiry, backups, template)
    if not owner:
        faults.insert(0, f"it has no tag {TAG}={environment}")
    if faults:
        fail(f"the table {name} cannot replace the stack's own: {'; '.join(faults)}. docs/restore.md has the commands")


def environment_of(tags):
    """The environment in a table's tags, or None."""
    return next((tag["Value"] for tag in tags["Tags"] if tag["Key"] == TAG), None)


def faults_of(table, expiry, backups, template):
    """The differences between a table, as DynamoDB's three calls describe it, and the table of the template."""
    table, declared = table["Table"], template["Resources"]["Table"]["Properties"]
    faults = []
    if table["KeySchema"] != declared["KeySchema"]:
        faults.append("its keys differ from the template's")
    present = {index["IndexName"]: shape(index) for index in table.get("GlobalSecondaryIndexes", [])}
    for index in declared["GlobalSecondaryIndexes"]:
        if present.get(index["IndexName"]) != shape(index):
            faults.append(f"its index {index['IndexName']} is missing or differs from the template's")
    if table["TableStatus"] != "ACTIVE":
        faults.append(f"its status is {table['TableStatus']}")
    if not table.get("DeletionProtectionEnabled"):
        faults.append("deletion protection is not enabled")
    wanted, found = declared["TimeToLiveSpecification"]["AttributeName"], expiry["TimeToLiveDescription"]
    if found["TimeToLiveStatus"] not in ("ENABLED", "ENABLING") or found.get("AttributeName") != wanted:
        faults.append(f"time to live is not enabled for {wanted}")
    recovery = backups["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]
    if recovery["PointInTimeRecoveryStatus"] != "ENABLED":
        faults.append("point-in-time recovery is not enabled")
    return faults


def shape(index):
    """The properties of an index that cannot be changed."""
    projection = index["Projection"]
    keys = [(key["AttributeName"], key["KeyType"]) for key in index["KeySchema"]]
    return keys, projection["ProjectionType"], sorted(projection.get("NonKeyAttributes", []))
