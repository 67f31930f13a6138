"""The contract tests against a deployed stack: all those that ask for no bundle of their own."""

import json
import os
import subprocess
from pathlib import Path

from bundle import programs
from emulator import REGION
from service import Service
from stack import ALIAS

# The managing entity that the tests' demo application is for, and the sample events are about.
DEMO = "demo-hotel"
# Each test at a time can cost a process of each function that it calls, as on AWS, and the emulator is one of Python.
AT_A_TIME = 8
# Tests that would show the emulator's ways and not ours.
EMULATORS_OWN = {
    "the emulator chooses a route after it has decoded %2F in a path": [
        "bodies::an_entity_that_cannot_exist_is_a_violation",
        "deliveries::an_identifier_that_cannot_exist_looks_missing",
        "payments::an_unknown_provider_is_not_found",
        "webhook_changes::a_missing_and_a_foreign_webhook_look_missing_to_every_operation",
    ],
    "the emulator answers OPTIONS itself": [
        "routes::a_path_that_does_not_exist_is_not_found",
        "routes::a_verb_that_a_path_does_not_take_is_answered_with_those_it_takes",
    ],
    "the emulator takes bodies of any size, and makes text of every one of JSON": [
        "bodies::a_connection_that_a_too_large_body_ends_is_not_used_again",
        "agents::what_is_no_message_is_told_so_by_json_rpc",
        "publish::a_body_that_is_not_json_is_refused_as_a_whole",
        "token::a_request_that_is_too_large_is_a_problem",
    ],
    "the emulator's bus hands no `TraceHeader` on": [
        "traces::an_event_of_the_bus_goes_on_with_the_trace_of_its_trace_header",
    ],
    "the emulator hands a function another text of the same JSON": [
        "ingest::a_rejected_event_that_the_queue_does_not_take_as_it_is_says_what_was_changed",
        "ingest::an_event_of_the_bus_may_be_as_large_as_any_other_and_no_larger",
        "ingest::an_identifier_that_comes_with_another_content_is_rejected",
        "ingest::data_of_the_bus_are_sent_byte_for_byte",
        "ingest::what_cannot_be_published_is_rejected_with_the_reason_and_not_tried_again",
    ],
    "an endpoint is waited for for less time than the emulator takes for the test's hundreds of requests": [
        "delivery_list::every_filter_alone_and_with_others_finds_what_it_says",
    ],
    "the emulator runs a function in several sandboxes, of which each keeps connections of its own": [
        "kept_connections::a_request_is_not_repeated_once_an_answer_has_begun",
        "kept_connections::a_request_that_a_kept_connection_lost_is_repeated_once_within_its_attempt",
        "kept_connections::attempts_of_an_entity_at_an_endpoint_share_a_connection",
        "kept_connections::entities_share_no_connection",
    ],
    "the emulator's greedy route takes a path with an empty part": [
        "panel_page::the_page_is_the_same_at_every_address_and_asked_for_each_time",
    ],
    "the suite asks at the root of an address, and the emulator's API lies below a path": [
        "agents_conformance::the_newest_revision_conforms",
        "agents_conformance::the_newest_revision_with_a_handshake_conforms",
    ],
    "the library asks the issuer at its public address, which leads nowhere here": [
        "agents_clients::the_former_library_of_typescript_needs_an_address_an_identifier_and_a_secret",
        "agents_clients::the_library_of_python_needs_an_address_an_identifier_and_a_secret",
        "agents_clients::the_library_of_typescript_needs_an_address_an_identifier_and_a_secret",
        "agents_clients::the_library_of_typescript_needs_no_secret_where_there_is_a_key",
        "agents_clients::the_program_of_the_documents_in_javascript_lists_webhooks",
        "agents_clients::the_program_of_the_documents_in_python_lists_webhooks",
        "agents_conformance::the_token_issuer_conforms",
        "oauth_clients::authlib_and_openid_client_ask_about_a_token_and_revoke_it",
        "oauth_clients::authlib_and_openid_client_authenticate_with_a_private_key",
        "oauth_clients::openid_client_gets_tokens_and_understands_errors",
    ],
}


class ContractTests:
    """The program with the tests, and the stack that they are about."""

    def __init__(self, program: Path, service: Service) -> None:
        self._program = program
        self._service = service
        self._emulator = service.stack.emulator

    def describe(self, template: Path) -> Path:
        """Registers the applications that the tests use, and writes the file that says where everything is."""
        stack, outputs, emulator = self._service.stack, self._service.stack.outputs(), self._emulator
        demo = self._service.register("Demo", DEMO)
        platform = self._service.register("Platform", "*")
        secrets, prefix = emulator.client("secretsmanager"), outputs["SecretsPrefix"]
        task_key = json.loads(secrets.get_secret_value(SecretId=f"{prefix}task-key")["SecretString"])["key"]
        variables = emulator.variables()
        described = {
            "STACK": stack.name,
            "API_ADDRESS": self._service.address,
            "BASE_URL": stack.parameters["BaseUrl"],
            "AUTH_URL": stack.parameters["AuthUrl"],
            "MANAGING_ENTITY": DEMO,
            "CLIENT_ID": demo[0],
            "CLIENT_SECRET": demo[1],
            "PLATFORM_CLIENT_ID": platform[0],
            "PLATFORM_CLIENT_SECRET": platform[1],
            "TASK_KEY": task_key,
            "ENVIRONMENT": outputs["EnvironmentName"],
            "DYNAMODB_ENDPOINT": variables["AWS_ENDPOINT_URL_DYNAMODB"],
            "TABLE_NAME": outputs["TableName"],
            "GEO_IP_STORE": outputs["GeoIpStore"],
            "S3_ENDPOINT": emulator.endpoint,
            "SERVICES_ENDPOINT": emulator.endpoint,
            "LAMBDA_ENDPOINT": emulator.endpoint,
        }
        described |= outputs
        described |= {name: value for name, value in variables.items() if name.startswith("AWS_")}
        resources = stack.resources()
        for logical_id, program in programs(template).items():
            described[f"FUNCTION_{program.upper().replace('-', '_')}"] = f"{resources[logical_id]}:{ALIAS}"
        file = emulator.folder / "service.env"
        content = "".join(f"{name}={value}\n" for name, value in described.items())
        file.touch(mode=0o600)
        file.write_text(content, encoding="utf-8")
        return file

    def _are_there(self, names: list[str]) -> None:
        listed = subprocess.run([self._program, "--list"], capture_output=True, text=True, check=True).stdout
        known = {line.rsplit(": ", 1)[0] for line in listed.splitlines()}
        gone = sorted(set(names) - known)
        assert not gone, f"no such tests: {', '.join(gone)}"

    def run(self, description: Path, only: str | None = None) -> str:
        """Runs them, with a line for each; says how many passed. `only` is a part of the names of those that are to run."""
        variables = self._emulator.variables() | {"DEPLOYED": str(description), "AWS_REGION": REGION}
        command = [str(self._program), "--test-threads", str(AT_A_TIME), "--color", "never"]
        if only:
            command.append(only)
        else:
            skipped = [name for names in EMULATORS_OWN.values() for name in names]
            self._are_there(skipped)
            command += ["--exact", *(word for name in skipped for word in ("--skip", name))]
        process = subprocess.Popen(
            command, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        result = ""
        try:
            assert process.stdout
            for line in process.stdout:
                print(f"  {line}", end="", flush=True)
                if line.startswith("test result:"):
                    result = line.strip()
            code = process.wait()
        finally:
            process.kill()
            process.wait()
        assert code == 0, result or f"the tests ended with {code}"
        return result.removeprefix("test result: ok. ")


def newest(folder: Path) -> Path:
    """The program with the contract tests that was built last."""
    built = [path for path in folder.glob("deps/contract-*") if not path.suffix and os.access(path, os.X_OK)]
    if not built:
        raise FileNotFoundError(f"{folder} has no contract tests; `make deploy-test` builds them")
    return max(built, key=lambda path: path.stat().st_mtime)
