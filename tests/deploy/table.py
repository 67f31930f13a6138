"""The table: the project's embedded one, as in `make run`, empty and in memory. It replaces the emulator's table, which checks
a condition and writes in two steps, so that two mutually exclusive writes can both succeed."""

import subprocess
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError


class EmbeddedTable:
    """The running table server; it ends with `stop`, or with this program."""

    def __init__(self, program: Path, variables: dict[str, str]) -> None:
        if not program.is_file():
            raise FileNotFoundError(f"{program} is missing; `make deploy-test` builds it")
        self._process = subprocess.Popen(
            [program, "--table-alone", "--stop-with-parent"],
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            # Ctrl-C reaches only the deployment test, which then stops the table.
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
    """Creates a table like the one that CloudFormation created in the emulator, unless it exists. `emulated` and `embedded` are
    clients of DynamoDB.
    """
    try:
        embedded.describe_table(TableName=name)
        return
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceNotFoundException":
            raise
    table = emulated.describe_table(TableName=name)["Table"]
    members = ("IndexName", "KeySchema", "Projection")
    embedded.create_table(
        TableName=name,
        KeySchema=table["KeySchema"],
        AttributeDefinitions=table["AttributeDefinitions"],
        GlobalSecondaryIndexes=[{member: index[member] for member in members} for index in table["GlobalSecondaryIndexes"]],
        BillingMode="PAY_PER_REQUEST",
    )
    expiry = emulated.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    if attribute := expiry.get("AttributeName"):
        specification = {"AttributeName": attribute, "Enabled": True}
        embedded.update_time_to_live(TableName=name, TimeToLiveSpecification=specification)
