"""The table: the project's own embedded one, as `make run` has it, empty and in memory. It stands in for the emulator's, which
checks a condition and writes in two steps, so that of two writes that exclude each other both can succeed."""

import subprocess
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError


class EmbeddedTable:
    """The running server of tables; it ends with `stop`, or with this program."""

    def __init__(self, program: Path, variables: dict[str, str]) -> None:
        if not program.is_file():
            raise FileNotFoundError(f"{program} is missing; `make rehearse` builds it")
        self._process = subprocess.Popen(
            [program, "--table-alone", "--stop-with-parent"],
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            # Ctrl-C reaches the rehearsal alone, which then ends it.
            start_new_session=True,
        )
        assert self._process.stdout
        self.endpoint = self._process.stdout.readline().strip()
        if not self.endpoint:
            raise RuntimeError(f"the embedded table does not start: it ended with {self._process.wait()}")

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()


def deploy(emulated: Any, embedded: Any, name: str) -> None:
    """Makes a table as CloudFormation has made it in the emulator, or adds or removes the index that an update has. `emulated`
    and `embedded` are clients of DynamoDB.
    """
    table = emulated.describe_table(TableName=name)["Table"]
    members = ("IndexName", "KeySchema", "Projection")
    indexes = [{member: index[member] for member in members} for index in table.get("GlobalSecondaryIndexes", [])]
    attributes = table["AttributeDefinitions"]
    try:
        present = embedded.describe_table(TableName=name)["Table"].get("GlobalSecondaryIndexes", [])
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceNotFoundException":
            raise
        embedded.create_table(
            TableName=name,
            KeySchema=table["KeySchema"],
            AttributeDefinitions=attributes,
            GlobalSecondaryIndexes=indexes,
            BillingMode="PAY_PER_REQUEST",
        )
        expiry = emulated.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
        if attribute := expiry.get("AttributeName"):
            specification = {"AttributeName": attribute, "Enabled": True}
            embedded.update_time_to_live(TableName=name, TimeToLiveSpecification=specification)
        return
    known, wanted = [{index["IndexName"] for index in some} for some in (present, indexes)]
    changes: list[dict[str, Any]] = [{"Create": index} for index in indexes if index["IndexName"] not in known]
    changes += [{"Delete": {"IndexName": former}} for former in known - wanted]
    # CloudFormation refuses more than one in an update:
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-dynamodb-table.html
    assert len(changes) <= 1, f"an update has several changes of indexes: {changes}"
    for change in changes:
        embedded.update_table(TableName=name, AttributeDefinitions=attributes, GlobalSecondaryIndexUpdates=[change])
