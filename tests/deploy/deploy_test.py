"""The deployment test: a new operator's steps with the stack, and their results for clients."""

import json
import uuid
from pathlib import Path
from typing import Any

import botocore.exceptions

import moving
import restoring
import stand_ins
from bundle import FAULT, Bundle, Template, failing
from contract import ContractTests
from emulator import Emulator
from manual import DOCUMENTS, Manual
from receiver import Receiver
from service import ENTITY, Service, credentials, until
from stack import Stack
from steps import Steps

FIRST, SECOND = "production", "staging"
EVENT_TYPE = "booking.created"
# The deliveries in the contract tests fail within seconds, as in a local bundle.
TESTED = {"RetrySchedule": "0s,1s,1s"}
CONTRACT_LIMIT = 900
# The short run must finish within five minutes on a busy machine.
CHOSEN_LIMIT = 180
# The heading about the bus in docs/publishing.md.
BUS = "Events of the platform's own services"
# The time limit for a sweep: a schedule's minute, the ten seconds between the emulator's checks,
# and the time that the sweep takes.
SWEEP_LIMIT = 150
# The four steps of a rotation; Secrets Manager calls a function for each.
ROTATION = ("createSecret", "setSecret", "testSecret", "finishSecret")


class DeployTest:
    """The steps, as methods, and their shared state. `run` has their order."""

    def __init__(
        self, emulator: Emulator, receiver: Receiver, binaries: Path, source: Path, tests: Path, whole: bool
    ) -> None:
        self.emulator = emulator
        self.receiver = receiver
        self.binaries = binaries
        self.source = source
        self.tests = tests
        self.whole = whole
        self.services: dict[str, Service] = {}
        self.webhook: dict[str, Any] = {}
        self.delivery = ""
        # A token issued before the emergency.
        self.old_token = ""
        # A delivery that is open when the first environment leaves its region.
        self.open = ""
        self.backup = ""
        self.manual = Manual(emulator, source.parent)
        self.bundle: Bundle
        self.template: Template
        # The first environment, in the region that it leaves.
        self.old: Service

    def run(self, steps: Steps) -> None:
        """Runs the steps; those for rare operations only in the whole test."""
        steps.run("the emulator starts", 40, self.start, essential=True)
        steps.run("the functions are packed", 180, self.pack, essential=True)
        steps.run("SAM's translator expands the template", 60, self.expand, essential=True)
        if self.whole:
            steps.run("a first deployment fails half-way and takes no names", 90, self.fail_first)
        steps.run("the first environment is deployed", 120, self.deploy_first, essential=True)
        steps.run("the operator provisions it, twice", 60, self.provision, essential=True)
        steps.run("tokens are issued and refused", 90, self.tokens, essential=True)
        steps.run("an event reaches a webhook, signed, and its attempt is recorded", 90, self.deliver)
        steps.run("a delivery is shown and resent from the terminal", 60, self.resend)
        steps.run("requests without a route get a Problem", 30, self.unmatched)
        steps.run("an event from the bus reaches the webhook", 90, self.ingest)
        steps.run("an event that cannot be published is inspected and submitted again", 90, self.reject)
        steps.run("the signing keys rotate in four steps", 90, self.rotate)
        steps.run("the keys of sealed secrets rotate", 150, self.rotate_data_keys)
        steps.run("applications are created and listed", 60, self.applications)
        steps.run("a payment provider is set up", 60, self.set_up_provider)
        steps.run("an update of geo-IP databases is tried", 60, self.try_geo_ip)
        steps.run("a second environment is deployed beside the first", 120, self.deploy_second)
        # Functions read the new keys within a minute, and a sweep finds the delivery within two
        # minutes. The contract tests run in the meantime.
        steps.run("a queue message is lost", 60, self.lose_message)
        steps.run("the signing keys are replaced in an emergency", 60, self.replace_keys)
        limit = CONTRACT_LIMIT if self.whole else CHOSEN_LIMIT
        steps.run("the contract tests pass against the second", limit, self.contract)
        steps.run("tokens of the replaced keys are refused", 120, self.refuse_old_token)
        steps.run("the scheduled sweep delivers the event of the lost message", SWEEP_LIMIT, self.sweep)
        steps.run("the same template again changes nothing", 60, self.unchanged)
        steps.run("a parameter is changed in place", 180, self.change)
        steps.run("an update that fails is rolled back", 90, self.roll_back)
        if self.whole:
            steps.run("the secrets are backed up", 30, self.back_up)
            steps.run("the table is restored into a new one, which the stack then uses", 240, self.restore)
        steps.run("the second environment is removed, and its data remain", 60, self.remove_second)
        if self.whole:
            steps.run("the first environment is deployed in another region", 120, self.deploy_elsewhere, essential=True)
            steps.run("it moves there, with its secrets and its table", 180, self.move, essential=True)
            steps.run("the new region delivers an open delivery, and the old one none", SWEEP_LIMIT, self.deliver_elsewhere)
            steps.run("the stack in the old region is removed, and its data remain", 60, self.remove_old)
        steps.run("the webhook is removed", 60, self.remove_webhook)
        steps.run("every command of the documents was followed", 10, self.followed)

    # ------------------------------------------------------------------------------------------------- deployment

    def start(self) -> str:
        self.emulator.wait()
        return f"ministack at {self.emulator.endpoint}"

    def pack(self) -> str:
        self.bundle = Bundle(self.emulator, self.source, self.binaries)
        return f"{len(self.bundle.code)} functions"

    def expand(self) -> str:
        self.template = Stack(self.emulator, self.bundle, FIRST).template()
        return f"{len(self.template['Resources'])} resources"

    def fail_first(self) -> str:
        stack = Stack(self.emulator, self.bundle, SECOND)
        status = stack.create(failing(stack.template()))
        assert status == "ROLLBACK_COMPLETE", status
        why = stack.failures()
        assert FAULT in why, why
        # CloudFormation does not update a stack whose creation was rolled back, so the stack must
        # be deleted first.
        stack.delete()
        taken = self._fixed_names(stack)
        assert not taken, f"the next deployment would find these names taken: {', '.join(taken)}"
        left = self._generated_names(stack)
        (table,) = left
        self.manual.follow("A first deployment that fails", places={"waypost-staging-Table-…": table})
        assert not self._generated_names(stack), "the table is still there"
        return f"left behind and removed by hand: {table}"

    def deploy_first(self) -> str:
        return self._deploy(FIRST)

    def _deploy(self, environment: str, **parameters: str) -> str:
        stack = Stack(self.emulator, self.bundle, environment)
        stack.parameters |= parameters
        self.services[environment] = self._created(stack)
        return f"{len(stack.resources())} resources"

    def _created(self, stack: Stack) -> Service:
        status = stack.create(stack.template())
        assert status == "CREATE_COMPLETE", f"{status}: {stack.failures()}"
        return Service(stack, self.binaries / "waypost-admin")

    def provision(self) -> None:
        service = self.services[FIRST]
        service.provision()
        before = self._secrets(service)
        self.manual.follow("Updating")
        assert self._secrets(service) == before, "a secret that has a value was replaced"

    def _secrets(self, service: Service) -> dict[str, str]:
        client = self.emulator.client("secretsmanager")
        prefix = service.stack.outputs()["SecretsPrefix"]
        names = [secret["Name"] for secret in client.list_secrets(MaxResults=100)["SecretList"]]
        # An update may have added a secret that is still empty.
        return {name: value for name in names if name.startswith(prefix) and (value := self._value(client, name))}

    def _value(self, secrets: Any, name: str) -> str | None:
        try:
            value: str = secrets.get_secret_value(SecretId=name)["SecretString"]
        except secrets.exceptions.ResourceNotFoundException:
            return None
        return value

    def _fixed_names(self, stack: Stack) -> list[str]:
        """The existing resources of a stack that have names from the template."""
        secrets = self.emulator.client("secretsmanager").list_secrets(MaxResults=100)["SecretList"]
        groups = self.emulator.client("logs").describe_log_groups(logGroupNamePrefix=f"/waypost/{stack.environment}/")
        names = [secret["Name"] for secret in secrets if secret["Name"].startswith(f"waypost/{stack.environment}/")]
        return names + [group["logGroupName"] for group in groups["logGroups"]]

    def _generated_names(self, stack: Stack) -> list[str]:
        """The existing tables and buckets of a stack, whose names CloudFormation generates."""
        tables = self.emulator.client("dynamodb").list_tables()["TableNames"]
        buckets = [bucket["Name"] for bucket in self.emulator.client("s3").list_buckets()["Buckets"]]
        return [name for name in tables + buckets if name.startswith(f"{stack.name}-")]

    def deploy_second(self) -> str:
        said = self._deploy(SECOND, **TESTED)
        service = self.services[SECOND]
        shared = stand_ins.shared_names(self.services[FIRST].stack.names(), service.stack.names())
        assert not shared, f"both environments have {', '.join(shared)}"
        service.client = credentials(self.manual.follow("Deploy"))
        token = service.token()
        service.call(token, "GET", "/webhook/list").expect(200)
        # Each environment has its own issuer and keys.
        self.services[FIRST].call(token, "GET", "/webhook/list").expect(401)
        self._serves()
        return said

    def contract(self) -> str:
        service = self.services[SECOND]
        tests = ContractTests(self.tests, service)
        schedules = stand_ins.FrequentSchedules(self.emulator, self.template, service.stack.resources())
        try:
            return tests.run(tests.describe(self.source), self.whole)
        finally:
            schedules.stop()

    def _serves(self) -> str:
        """Asserts that the first environment issues tokens and has its webhook; returns a token."""
        service = self.services[FIRST]
        token = service.token()
        webhooks = service.call(token, "GET", "/webhook/list").expect(200).json()
        assert [webhook["id"] for webhook in webhooks] == [self.webhook["id"]], webhooks
        return token

    def unchanged(self) -> None:
        # The routes are not part of the stack here, so an update never changes them.
        stack = self.services[FIRST].stack
        status = stack.update(stack.template())
        assert status is None, f"an update without a change ended as {status}"

    def change(self) -> str:
        service = self.services[FIRST]
        stack, secrets, token = service.stack, self._secrets(service), service.token()
        before, versions = stack.resources(), stack.versions()
        stack.parameters["LogLevel"] = "debug"
        status = stack.update(stack.template())
        assert status == "UPDATE_COMPLETE", f"{status}: {stack.failures()}"
        gone = set(before.values()) - set(stack.resources().values())
        assert gone == versions, f"resources other than the functions' versions were replaced: {gone - versions}"
        assert stack.variables("Token")["LOG_LEVEL"] == "debug", "the alias still has the previous version"
        assert self._secrets(service) == secrets, "a secret has another value"
        # An earlier token remains valid until it expires.
        delivery = service.call(token, "GET", f"/webhook/delivery/{self.delivery}").expect(200).json()
        assert (delivery["status"], len(delivery["attempts"])) == ("delivered", 1), delivery
        self._serves()
        return "LogLevel"

    def roll_back(self) -> str:
        stack = self.services[FIRST].stack
        stack.parameters["LogLevel"] = "warn"
        template = stack.template()
        status = stack.update(failing(template))
        assert status == "UPDATE_ROLLBACK_COMPLETE", status
        assert stack.variables("Token")["LOG_LEVEL"] == "debug", "the alias has the version that was rolled back"
        self._serves()
        # The failed update's leftovers do not matter: Lambda does not publish the same code twice
        # in a row.
        status = stack.update(template)
        assert status == "UPDATE_COMPLETE", f"{status}: {stack.failures()}"
        assert stack.variables("Token")["LOG_LEVEL"] == "warn", "the alias still has the previous version"
        self._serves()
        return "and succeeds without the fault"

    def back_up(self) -> str:
        self.backup = restoring.back_up(self.services[FIRST], self.manual)
        return self.backup

    def restore(self) -> str:
        service = self.services[FIRST]
        restoring.restore_table(service, self.manual)
        later = {"name": "Later", "eventUrl": self.receiver.url, "eventList": [EVENT_TYPE]}
        service.call(service.token(), "POST", "/webhook", later).expect(201)
        restoring.use_restored_table(service, self.manual, self.backup)
        # The later webhook is missing. An event reaches the earlier webhook, signed with its
        # secret, so the data keys were able to open it.
        self._publish(self._serves(), "B-6")
        until("the delivery", 60, lambda: self.receiver.event_of("B-6")).verified(self.webhook["signingSecret"])
        assert self._shown(service, self.delivery)["status"] == "delivered"
        return restoring.RESTORED

    def _shown(self, service: Service, delivery: str) -> Any:
        return service.call(service.token(), "GET", f"/webhook/delivery/{delivery}").expect(200).json()

    def deploy_elsewhere(self) -> str:
        self.old = self.services[FIRST]
        self.services[FIRST] = self._created(moving.new_stack(self.old.stack))
        # No client needs to be registered again.
        self.services[FIRST].client = self.old.client
        return moving.NEW

    def move(self) -> str:
        new = self.services[FIRST]
        moving.copy_secrets(self.old, new, self.manual)
        moving.stop(self.old, self.manual)
        self.open = self._publish(self.old.token(), "B-8", self.old)
        moving.move_table(self.old, new, self.manual)
        self._publish(self._serves(), "B-9")
        until("the delivery", 60, lambda: self.receiver.event_of("B-9")).verified(self.webhook["signingSecret"])
        assert self._shown(new, self.delivery)["status"] == "delivered"
        return moving.MOVED

    def deliver_elsewhere(self) -> None:
        received = until("the delivery", SWEEP_LIMIT, lambda: self.receiver.event_of("B-8"))
        received.verified(self.webhook["signingSecret"])
        new = self.services[FIRST]
        until("the attempt", 30, lambda: self._shown(new, self.open)["status"] == "delivered" or None)
        assert not self._shown(self.old, self.open)["attempts"], "the old region attempted it too"

    def remove_old(self) -> None:
        stack = self.old.stack
        table = stack.resources()["Table"]
        moving.remove(stack, self.manual)
        assert table in self._generated_names(stack), "its table is gone"
        assert any("data-keys" in name for name in self._fixed_names(stack)), "its secrets are gone"
        self._serves()

    def remove_second(self) -> str:
        stack = self.services[SECOND].stack
        stack.delete()
        kept = self._fixed_names(stack) + self._generated_names(stack)
        for part in ("signing-key", "Table", "geoipbucket"):
            assert any(part in name for name in kept), f"{part} is gone: {kept}"
        self._serves()
        return f"{len(kept)} kept"

    # ----------------------------------------------------------------------------------------------------- clients

    def tokens(self) -> None:
        service = self.services[FIRST]
        token = service.token()
        service.call(token, "GET", "/webhook/list").expect(200)
        identifier, _ = service.client
        refused = service.ask_for_token((identifier, "wrong")).expect(401)
        assert refused.json()["error"] == "invalid_client", refused.text
        assert service.request("GET", f"/api/managing-entity/{ENTITY}/webhook/list").expect(401).problem()
        head, _, _ = token.rpartition(".")
        assert service.call(f"{head}.AAAA", "GET", "/webhook/list").expect(401).problem()
        assert service.call(token, "GET", "/webhook/list", entity="hotel-2").expect(403).problem()

    def unmatched(self) -> None:
        service = self.services[FIRST]
        assert service.request("GET", "/nothing").expect(404).problem() == "not-found"
        refused = service.request("DELETE", "/oauth2/token").expect(405)
        assert refused.headers["allow"] == "POST", refused.headers

    def deliver(self) -> None:
        service = self.services[FIRST]
        token = service.token()
        made = {"name": "Deployment test", "eventUrl": self.receiver.url, "eventList": [EVENT_TYPE]}
        self.webhook = service.call(token, "POST", "/webhook", made).expect(201).json()
        self.delivery = self._publish(token, "B-1")
        received = until("the delivery", 60, lambda: self.receiver.event_of("B-1"))
        assert received.verified(self.webhook["signingSecret"])["type"] == EVENT_TYPE

        def recorded() -> Any:
            shown = service.call(token, "GET", f"/webhook/delivery/{self.delivery}").expect(200).json()
            return shown if shown["status"] == "delivered" else None

        shown = until("the attempt", 30, recorded)
        assert (shown["attemptCount"], shown["lastHttpStatus"], len(shown["attempts"])) == (1, 204, 1), shown

    def resend(self) -> None:
        service = self.services[FIRST]
        delivery = self._publish(service.token(), "B-7")

        def attempted(times: int) -> bool | None:
            shown = json.loads(service.admin("delivery", "show", delivery, "--json"))
            return (shown["status"], len(shown["attempts"])) == ("delivered", times) or None

        until("the delivery", 60, lambda: attempted(1))
        said = service.admin("delivery", "resend", delivery)
        assert delivery in said and ENTITY in said, said
        until("the second attempt", 30, lambda: attempted(2))

    def _publish(self, token: str, booking: str, service: Service | None = None) -> str:
        """Publishes an event, to the first environment by default; returns the identifier of its only delivery."""
        event = {"type": EVENT_TYPE, "data": {"bookingIdentifier": booking}}
        answer = (service or self.services[FIRST]).call(token, "POST", "/webhook/event", event)
        assert answer.status in (200, 201, 202), answer
        (delivery,) = answer.json()["deliveries"]
        identifier: str = delivery["deliveryIdentifier"]
        return identifier

    def ingest(self) -> None:
        put = json.loads(self.manual.follow(BUS, "aws events put-events"))
        assert put["FailedEntryCount"] == 0, put
        received = until("the delivery", 60, lambda: self.receiver.event_of("B-1001"))
        received.verified(self.webhook["signingSecret"])

    def reject(self) -> None:
        """A service puts an event of an unknown type on the bus."""
        entry = {"Source": "platform.bookings", "DetailType": f"waypost.{FIRST}.event", "Detail": '{"type": "none"}'}
        assert self.emulator.client("events").put_events(Entries=[entry])["FailedEntryCount"] == 0
        queue, sqs = self.services[FIRST].stack.outputs()["RejectedEventsUrl"], self.emulator.client("sqs")

        def waiting() -> bool | None:
            counted = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["ApproximateNumberOfMessages"])
            return counted["Attributes"]["ApproximateNumberOfMessages"] != "0" or None

        until("the rejected event", 60, waiting)
        said = self.manual.follow(BUS)
        assert '"reason"' in said and '"rejected"' in said, said
        # The event that was submitted again was rejected again, and the old message is removed.
        left = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, VisibilityTimeout=0).get("Messages", [])
        assert len(left) == 1, left

    def rotate_data_keys(self) -> None:
        self.manual.follow("Rotating the keys of sealed secrets")
        self._publish(self._serves(), "B-4")
        received = until("the delivery", 60, lambda: self.receiver.event_of("B-4"))
        received.verified(self.webhook["signingSecret"])

    def applications(self) -> None:
        service = self.services[FIRST]
        made = self.manual.follow("Applications").strip().splitlines()
        first, second = credentials("\n".join(made[:2])), credentials("\n".join(made[2:]))
        for client in (first, second):
            service.ask_for_token(client).expect(200)
        listed = self.manual.follow("The operator's program")
        assert "Channel manager" in listed and "Back office" not in listed, listed
        self.manual.follow("Stuck deliveries")

    def set_up_provider(self) -> None:
        service = self.services[FIRST]
        provider = "/payment/provider/stripe/connection"
        token = service.token()
        assert service.call(token, "POST", provider).expect(404).problem() == "provider-not-found"
        self.manual.follow("Register a provider", places={"ENVIRONMENT": FIRST})
        service.call(token, "POST", provider).expect(201)

    def try_geo_ip(self) -> None:
        service = self.services[FIRST]
        secrets, prefix = self.emulator.client("secretsmanager"), service.stack.outputs()["SecretsPrefix"]
        key = json.loads(secrets.get_secret_value(SecretId=f"{prefix}task-key")["SecretString"])["key"]
        variables = {"BASE_URL": service.address, "TOKEN": service.token(), "TASK_KEY": key, "ENVIRONMENT": FIRST}
        said = json.loads(self.manual.follow("Update", variables=variables))
        assert "status" not in said, said

    def replace_keys(self) -> None:
        self.old_token = self.services[FIRST].token()
        self.manual.follow("Rotating the keys that sign tokens")

    def refuse_old_token(self) -> None:
        service = self.services[FIRST]

        def refused() -> bool | None:
            return service.call(self.old_token, "GET", "/webhook/list").status == 401 or None

        # Functions read revocations and new keys once a minute.
        until("the refusal of an old token", 90, refused)
        service.call(service.token(), "GET", "/webhook/list").expect(200)

    def followed(self) -> str:
        left, vain = self.manual.left(self.whole), self.manual.mentioned_in_vain()
        assert not left, f"commands without a run or a reason: {'; '.join(left)}"
        assert not vain, f"reasons for commands that do not exist: {'; '.join(vain)}"
        return ", ".join(DOCUMENTS)

    def lose_message(self) -> None:
        service = self.services[FIRST]
        token = service.token()
        outputs, sqs, functions = service.stack.outputs(), self.emulator.client("sqs"), self.emulator.client("lambda")
        queue = outputs["DeliveryQueueUrl"]
        mapping = service.stack.resources()["DispatchDeliveriesQueue"]
        functions.update_event_source_mapping(UUID=mapping, Enabled=False)
        try:
            self._publish(token, "B-3")

            def waiting() -> Any:
                message = sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=1).get("Messages")
                return message[0] if message else None

            message = until("the delivery's message", 20, waiting)
            sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
        finally:
            functions.update_event_source_mapping(UUID=mapping, Enabled=True)
        assert self.receiver.event_of("B-3") is None, "it was delivered before its message was lost"

    def sweep(self) -> None:
        until("the delivery", SWEEP_LIMIT, lambda: self.receiver.event_of("B-3"))

    def rotate(self) -> str:
        service = self.services[FIRST]
        _, function = stand_ins.rotation_schedule(self.template)
        secret, old = service.stack.resources()["SigningKey"], service.token()
        before = self._signing_key(secret)
        self._age_keys(service.stack)
        version = str(uuid.uuid4())
        for step in ROTATION:
            event = {"Step": step, "SecretId": secret, "ClientRequestToken": version}
            service.stack.invoke(function, event)
        after = self._signing_key(secret)
        assert after["current"]["kid"] == before["next"]["kid"], "the next key is not the current one"
        published = service.request("GET", "/oauth2/jwks").expect(200).json()["keys"]
        kids = {key["kid"] for key in published}
        assert {before["current"]["kid"], after["current"]["kid"], after["next"]["kid"]} <= kids, kids
        # Tokens from the old key remain valid until they expire.
        service.call(old, "GET", "/webhook/list").expect(200)
        service.call(service.token(), "GET", "/webhook/list").expect(200)
        return function

    def _age_keys(self, stack: Stack) -> None:
        """Makes the published keys old enough to sign: a rotation requires ten minutes."""
        table = self.emulator.client("dynamodb", self.emulator.table.endpoint)
        name = stack.resources()["Table"]
        item = table.get_item(TableName=name, Key={"pk": {"S": "KEYS"}, "sk": {"S": "JWKS"}})["Item"]
        for key in item["keys"]["L"]:
            key["M"]["publishedDate"] = {"S": "2026-01-01T00:00:00.000Z"}
        table.put_item(TableName=name, Item=item)

    def _signing_key(self, secret: str) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(
            self.emulator.client("secretsmanager").get_secret_value(SecretId=secret)["SecretString"]
        )
        return value

    def remove_webhook(self) -> None:
        service = self.services[FIRST]
        token = service.token()
        service.call(token, "DELETE", f"/webhook/{self.webhook['id']}").expect(200)
        service.call(token, "GET", f"/webhook/{self.webhook['id']}").expect(404)

    def explain(self) -> str:
        """The last errors in the functions' logs."""
        try:
            return "\n".join(filter(None, (service.stack.logs() for service in self.services.values())))
        except botocore.exceptions.BotoCoreError as error:
            return str(error)
