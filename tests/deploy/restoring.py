"""Backup and restore, by the commands of docs/restore.md: the stack switches to a restored table."""

import sys
from pathlib import Path
from typing import Any

from samtranslator.yaml_helper import yaml_parse

import stand_ins
from manual import Manual
from service import Service, until
from stack import Stack

sys.path.append(str(Path(__file__).resolve().parents[2] / "operator"))
from existing_table import environment_of, faults_of  # noqa: E402: the operator's scripts are no package

RESTORED = "waypost-restored-1"
# The date of the backup in docs/restore.md.
DAY = "2026-11-20"
# The region that holds the copies of the secrets.
BACKUP_REGION = "eu-west-1"
BACKED_UP = ("client-secret-pepper", "data-keys")


def back_up(service: Service, manual: Manual) -> str:
    """Copies the secrets; returns the names of the copies."""
    names = manual.follow("Back up").split()
    emulator = service.stack.emulator
    copies, originals = emulator.client("secretsmanager", region=BACKUP_REGION), emulator.client("secretsmanager")
    prefix = service.stack.outputs()["SecretsPrefix"]
    for name, copy in zip(BACKED_UP, names, strict=True):
        value = originals.get_secret_value(SecretId=prefix + name)["SecretString"]
        assert copies.get_secret_value(SecretId=copy)["SecretString"].strip() == value, f"{copy} differs from {name}"
    return ", ".join(names)


def restore_table(service: Service, manual: Manual) -> None:
    """Restores the table's current state into a new table."""
    manual.follow("Restore the table")
    fill(service.stack, RESTORED, service.stack.resources()["Table"])


def fill(stack: Stack, table: str, source: str) -> None:
    """Asserts that the stack can use a restored table, and copies the items of its source."""
    emulated, embedded = stack.client("dynamodb"), stack.emulator.client("dynamodb", stack.emulator.table.endpoint)
    template = yaml_parse(stack.bundle.source.read_text(encoding="utf-8"))
    described = emulated.describe_table(TableName=table)
    tags = emulated.list_tags_of_resource(ResourceArn=described["Table"]["TableArn"])
    assert environment_of(tags) == stack.environment, tags
    faults = faults_of(
        described,
        emulated.describe_time_to_live(TableName=table),
        emulated.describe_continuous_backups(TableName=table),
        template,
    )
    assert not faults, faults
    stand_ins.restored_items(emulated, embedded, source, table)


def use_restored_table(service: Service, manual: Manual, backup: str) -> None:
    """Loses the data keys and puts them back, and lets the stack use the restored table."""
    _lose_data_keys(service)
    day = backup.rsplit("/", 1)[1]
    manual.follow("Put a secret back", places={f"data-keys/{DAY}": f"data-keys/{day}"})
    use_table(service.stack, RESTORED)
    manual.follow("After the switch")
    wait_for_new_keys(service)


def use_table(stack: Stack, table: str) -> None:
    """Lets the stack use a table other than its own."""
    own = stack.resources()["Table"]
    stack.parameters["TableName"] = table
    status = stack.update(stack.template())
    assert status == "UPDATE_COMPLETE", f"{status}: {stack.failures()}"
    assert stack.variables("Token")["TABLE_NAME"] == table
    assert stack.outputs()["TableName"] == table, "waypost-admin would use the stack's own table"
    assert stack.resources()["Table"] == own, "the stack's own table is replaced"


def wait_for_new_keys(service: Service) -> None:
    """Waits after a replacement of the signing keys: a function reads new keys once a minute."""
    until("a token of the new keys that is accepted", 90, lambda: _is_accepted(service))


def _is_accepted(service: Service) -> bool | None:
    return service.call(service.token(), "GET", "/webhook/list").status == 200 or None


def _lose_data_keys(service: Service) -> None:
    """Replaces the data keys with a value that can open nothing, as if the secret were lost."""
    secrets: Any = service.stack.emulator.client("secretsmanager")
    secrets.put_secret_value(SecretId=service.stack.outputs()["SecretsPrefix"] + "data-keys", SecretString="{}")
