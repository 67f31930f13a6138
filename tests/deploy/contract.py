"""The contract tests against a deployed stack: those that need no local bundle, or a selection of them."""

import json
import os
import subprocess
from pathlib import Path

from bundle import programs
from emulator import REGION
from service import Service
from stack import ALIAS

# The managing entity that the tests' demo application and the sample events use.
DEMO = "demo-hotel"
# The number of concurrent tests: each may need a process for each function that it calls, and the
# emulator is a single Python process.
AT_A_TIME = 8
# The tests in the short run, by module or name. They use each function, each kind of trigger and
# each AWS service. The other tests check details of functions, for which a local bundle suffices.
CHOSEN = {
    "every function starts, and the routes lead to them": [
        "samples",
        "checks::every_operation_under_api_is_in_the_table",
        "checks::a_good_request_passes_every_check",
        "bodies",
        "openapi",
        "pages",
        "problems",
    ],
    "tokens, and the applications that get them": [
        "token",
        "client_authentication",
        "introspection",
        "revocation::an_application_revokes_its_own_tokens_only",
        "applications",
        "application_operators",
    ],
    "webhooks, whose attempts come through the queues": [
        "webhook_secrets",
        "webhook_test_event",
        "publish",
        "publish_data",
        "publish_keys",
        "deliveries",
        "retries::a_delivery_is_retried_until_it_succeeds",
        "retries::an_exhausted_delivery_is_failed",
        "resend::a_failed_delivery_gets_a_fresh_schedule_and_is_delivered",
    ],
    "feeds, whose readers wait for an answer": [
        "feeds::a_delivery_is_read_as_it_would_be_sent_and_confirmed",
        "feeds::a_feed_gives_the_oldest_first_and_waits_for_the_next",
    ],
    "events from the bus": ["ingest"],
    "schedules": [
        "recover::failed_deliveries_alone_are_recovered_when_no_others_are_included",
        "feeds_changes::unread_deliveries_of_a_removed_or_disabled_webhook_are_cancelled",
        "payments_refresh::the_rotated_token_is_the_one_that_is_used_next",
    ],
    "people with a browser, its redirects and its cookies": [
        "panel_page",
        "panel_links",
        "panel_sessions",
        "payments",
        "payments_start",
        "payments_callback",
    ],
    "agents": ["agents", "agents_tools"],
    "geo-IP databases": ["geo_ip"],
}
# Tests in the selected modules that the short run omits, with the reasons.
OMITTED = {
    "the emulator starts a process and three threads for each of dozens of concurrent requests": [
        "agents::a_hundred_calls_at_once_are_all_answered",
        "applications::an_entity_has_a_hundred_applications_at_most",
        "client_authentication::an_assertion_is_accepted_once_even_if_sent_concurrently",
        "deliveries::many_deliveries_each_arrive",
        "ingest::an_event_of_the_bus_that_comes_twenty_times_at_once_is_published_once",
        "payments_callback::of_fifty_callbacks_at_once_one_exchanges_the_code",
        "publish_keys::of_two_bodies_with_the_same_key_at_once_one_is_published",
        "publish_keys::the_same_key_at_once_publishes_once",
    ],
    "they wait": [
        "applications::the_tokens_of_a_removed_application_end",
        "payments::a_provider_that_fails_keeps_its_connection",
    ],
}
# Tests that fail because of the emulator, by module or name.
EMULATORS_OWN = {
    "the emulator decodes %2F in a path before it chooses a route": [
        "bodies::an_entity_that_cannot_exist_is_a_violation",
        "deliveries::an_identifier_that_cannot_exist_looks_missing",
        "payments::an_unknown_provider_is_not_found",
        "webhook_changes::a_missing_and_a_foreign_webhook_look_missing_to_every_operation",
    ],
    "the emulator answers OPTIONS itself": [
        "routes::a_path_that_does_not_exist_is_not_found",
        "routes::a_verb_that_a_path_does_not_take_is_answered_with_those_it_takes",
        "routes::a_browser_may_ask_whether_a_script_may_read_a_public_document",
    ],
    "the emulator accepts bodies of any size, and passes every JSON body on as text": [
        "bodies::a_connection_that_a_too_large_body_ends_is_not_used_again",
        "agents::an_invalid_message_gets_an_error_of_json_rpc",
        "publish_data::a_body_that_is_not_json_is_refused_as_a_whole",
        "token::a_request_that_is_too_large_is_a_problem",
    ],
    "the emulator refuses compressed bodies itself": [
        "bodies::a_compressed_body_is_refused",
    ],
    "the emulator's bus does not pass on `TraceHeader`": [
        "traces::an_event_of_the_bus_continues_the_trace_of_its_trace_header",
    ],
    "the emulator passes a function the same JSON in another notation": [
        "ingest::a_rejected_event_that_was_changed_for_the_queue_says_how",
        "ingest::an_event_of_the_bus_may_be_as_large_as_any_other_and_no_larger",
        "ingest::an_identifier_that_comes_with_another_content_is_rejected",
        "ingest::data_of_the_bus_are_sent_byte_for_byte",
        "ingest::an_invalid_bus_event_is_rejected_with_the_reason_and_not_retried",
    ],
    "the timeout of an endpoint is shorter than the emulator needs for the test's hundreds of requests": [
        "delivery_list::every_filter_alone_and_with_others_finds_what_it_says",
    ],
    "the emulator runs a function in several sandboxes, each with its own connections": [
        "kept_connections::attempts_of_an_entity_at_an_endpoint_share_a_connection",
        "kept_connections::entities_share_no_connection",
    ],
    "the emulator's greedy route matches a path with an empty segment": [
        "panel_page::the_page_is_the_same_at_every_address_and_asked_for_each_time",
    ],
    "the suite calls the root of an address, and the emulator's API is below a path": [
        "agents_conformance::the_newest_revision_conforms",
        "agents_conformance::the_newest_revision_with_a_handshake_conforms",
    ],
    "the library calls the issuer at its public address, which does not exist here": [
        "agents_clients::a_tool_beyond_the_registration_does_not_end_the_session_of_a_library",
        "agents_clients::the_former_typescript_library_needs_only_an_address_and_credentials",
        "agents_clients::the_python_library_needs_only_an_address_and_credentials",
        "agents_clients::the_typescript_library_needs_only_an_address_and_credentials",
        "agents_clients::the_typescript_library_needs_no_secret_where_there_is_a_key",
        "agents_clients::the_documented_javascript_program_lists_webhooks",
        "agents_clients::the_documented_python_program_lists_webhooks",
        "agents_conformance::the_token_issuer_conforms",
        "oauth_clients::authlib_and_openid_client_ask_about_a_token_and_revoke_it",
        "oauth_clients::authlib_and_openid_client_authenticate_with_a_private_key",
        "oauth_clients::openid_client_authenticates_with_an_ed25519_key",
        "oauth_clients::openid_client_gets_tokens_and_understands_errors",
    ],
    "the stack's cookie is for TLS, and the emulator is called without": [
        "panel_embedding::without_the_settings_the_panel_has_its_own_name_and_colours",
        "panel_sessions::a_cookie_that_was_never_the_sessions_ends_nothing",
        "panel_sessions::a_person_who_signs_out_ends_the_session",
        "panel_sessions::a_session_continues_by_its_cookie_and_each_renewal_replaces_it",
    ],
    "a browser calls the public address, which does not exist here": [
        "browser",
        "browser_panel",
        "browser_panel_access",
        "browser_panel_deliveries",
        "browser_panel_framed",
        "browser_panel_hostile",
        "browser_panel_pictures",
        "browser_panel_speed",
        "browser_panel_webhooks",
    ],
}


def _named(reasons: dict[str, list[str]], known: set[str]) -> set[str]:
    """The known tests with these names, or in these modules."""
    wanted = [name for names in reasons.values() for name in names]
    found = {name: {test for test in known if f"{test}::".startswith(f"{name}::")} for name in wanted}
    gone = [name for name, tests in found.items() if not tests]
    assert not gone, f"no such tests: {', '.join(gone)}"
    return set().union(*found.values())


class ContractTests:
    """The test program and the stack under test."""

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

    def _skipped(self, whole: bool) -> list[str]:
        """The tests that fail because of the emulator and, in the short run, the tests that are not chosen."""
        listed = subprocess.run([self._program, "--list"], capture_output=True, text=True, check=True).stdout
        known = {line.rsplit(": ", 1)[0] for line in listed.splitlines()}
        failing, chosen, omitted = (_named(part, known) for part in (EMULATORS_OWN, CHOSEN, OMITTED))
        return sorted(failing if whole else failing | omitted | known - chosen)

    def run(self, description: Path, whole: bool) -> str:
        """Runs all tests or the chosen ones, and prints a line for each; returns the counts."""
        variables = self._emulator.variables() | {"DEPLOYED": str(description), "AWS_REGION": REGION}
        command = [str(self._program), "--test-threads", str(AT_A_TIME), "--color", "never", "--exact"]
        command += [word for name in self._skipped(whole) for word in ("--skip", name)]
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
    """The newest program with the contract tests."""
    built = [path for path in folder.glob("deps/contract-*") if not path.suffix and os.access(path, os.X_OK)]
    if not built:
        raise FileNotFoundError(f"{folder} has no contract tests; `make deploy-test` builds them")
    return max(built, key=lambda path: path.stat().st_mtime)
