"""Generates a client from the served document with openapi-generator, checks it and the code that uses it with mypy,
and runs that code. Input: the settings of the bundle as JSON; output: the client's results, the number of the
document's examples that its models have read, and the number of values in them that a later release may extend."""

import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

USE = Path(__file__).parent / "generated" / "use_openapi_generator.py"
# Starting Java takes half of a run's time.
JAVA = {"JAVA_TOOL_OPTIONS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"}


def run(program, *options, **environment):
    """Runs a program from the environment; its output becomes the error text if it fails."""
    command = [Path(sys.executable).with_name(program), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    if done.returncode:
        sys.exit(f"{program} fails:\n{done.stdout}{done.stderr}")


def examples(value, document):
    """Every example of a JSON body with a named schema, as a pair of name and example."""
    for content in [value] if "schema" in value and "examples" in value else []:
        schema, given = content["schema"], [example["value"] for example in content["examples"].values()]
        if schema.get("type") == "array":
            schema, given = schema["items"], [element for example in given for element in example]
        name = schema.get("$ref", "").rpartition("/")[2]
        if document["components"]["schemas"].get(name, {}).get("properties"):
            yield from ((name, example) for example in given)
    for member in value.values():
        for inner in member if isinstance(member, list) else [member]:
            if isinstance(inner, dict):
                yield from examples(inner, document)


def fetched(settings):
    """The document, with the address at which the tests reach the token issuer, since the client has no setting for
    it."""
    # Ignore any proxy that the environment sets.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(settings["document"]) as answer:
        return answer.read().decode().replace(settings["issuer"], settings["address"])


def later(name, example, document):
    """The example, with a value that no release has yet in each member with listed values, and the number of these
    members."""
    schemas = document["components"]["schemas"]

    def is_open(member):
        schema = schemas[name]["properties"].get(member, {})
        schema = schemas.get(schema.get("$ref", "").rpartition("/")[2], schema)
        return "examples" in schema and schema.get("type") == "string"

    added = [member for member in example if is_open(member)]
    return example | dict.fromkeys(added, "later"), len(added)


def read_examples(document):
    """The number of examples that the client's models have read, both unchanged and with later values, and the number
    of these values. Fails at the first example that a model refuses."""
    import waypost_client

    read = values = 0
    for name, example in examples(document, document):
        # The generator creates no models for forms.
        if model := getattr(waypost_client, name, None):
            changed, added = later(name, example, document)
            assert model.from_dict(example) and model.from_dict(changed), example
            read, values = read + 1, values + added
    return {"examples": read, "laterValues": values}


with tempfile.TemporaryDirectory() as folder:
    settings, made = json.load(sys.stdin), Path(folder)
    document = made / "openapi.json"
    document.write_text(fetched(settings))
    parts = "apis,models,supportingFiles,apiDocs=false,modelDocs=false,apiTests=false,modelTests=false"
    options = ["-g", "python", "-p", "packageName=waypost_client", "--global-property", parts]
    run("openapi-generator-cli", "generate", "-i", document, "-o", made, *options, **JAVA)
    # One of the client's libraries has no type annotations.
    checks = ["--disable-error-code", "import-untyped", "--check-untyped-defs", "--cache-dir", made / "checked"]
    run("mypy", *checks, made / "waypost_client", USE, MYPYPATH=folder)
    sys.path[:0] = [folder, str(USE.parent)]
    from use_openapi_generator import use

    json.dump(use(settings) | read_examples(json.loads(document.read_text())), sys.stdout)
