"""A change of region, by the commands of docs/restore.md: a second stack of the environment, in another region, replaces the
first with its secrets and its items.
"""

import restoring
import stand_ins
from emulator import REGION
from manual import Manual
from service import Service
from stack import ALIAS, Stack

# The heading in docs/restore.md, and the regions that it names.
HEADING = "Change of region"
OLD, NEW = "eu-central-1", "eu-west-1"
MOVED = "waypost-moved-1"
STOPPED = ("DispatchDeliveries", "RefreshConnections")
# The document's variables for commands that do not name a region.
IN_NEW_REGION = {"AWS_REGION": NEW, "AWS_DEFAULT_REGION": NEW}


def new_stack(old: Stack) -> Stack:
    """The stack of the same environment in the new region, before its creation."""
    stack = Stack(old.emulator, old.bundle.in_region(NEW), old.environment, NEW)
    # The old stack's restored table does not exist in the new region.
    stack.parameters = {name: value for name, value in old.parameters.items() if name != "TableName"}
    return stack


def copy_secrets(old: Service, new: Service, manual: Manual) -> None:
    """Copies the secrets into the new region; asserts that none that the new stack needs is left out."""
    manual.follow(HEADING, "for NAME", places={OLD: REGION})
    originals, copies = old.stack.client("secretsmanager"), new.stack.client("secretsmanager")
    names = [secret["Name"] for secret in copies.list_secrets(MaxResults=100)["SecretList"]]
    prefix = new.stack.outputs()["SecretsPrefix"]
    for name in (name for name in names if name.startswith(prefix)):
        value = originals.get_secret_value(SecretId=name)["SecretString"]
        assert copies.get_secret_value(SecretId=name)["SecretString"].strip() == value.strip(), f"{name} differs"


def stop(old: Service, manual: Manual) -> None:
    """Stops deliveries and the refresh of connections in the old region."""
    manual.follow(HEADING, "for FUNCTION", places={OLD: REGION})
    resources = old.stack.resources()
    stand_ins.reserved_concurrency(old.stack.client("lambda"), [resources[name] for name in STOPPED], ALIAS)


def move_table(old: Service, new: Service, manual: Manual) -> None:
    """Lets the new stack use a copy of the old stack's table."""
    stack = new.stack
    source, own = old.stack.outputs()["TableName"], stack.resources()["Table"]
    assert source != own, "both regions share an embedded table"
    stand_ins.table_from_another_region(stack.client("dynamodb"), own, MOVED)
    places = {restoring.RESTORED: MOVED}
    manual.follow("Restore the table", "aws dynamodb update-time-to-live", places, IN_NEW_REGION, again=True)
    restoring.fill(stack, MOVED, source)
    restoring.use_table(stack, MOVED)
    manual.follow("After the switch", variables=IN_NEW_REGION, again=True)
    restoring.wait_for_new_keys(new)


def remove(old: Stack, manual: Manual) -> None:
    """Removes the stack in the old region."""
    manual.follow(HEADING, "aws cloudformation update-termination-protection", places={OLD: REGION})
    old.settle_deletion()
