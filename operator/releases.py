"""The versions that were deployed. Each one's template, with the addresses of its programs, is kept in SAM's bucket
next to the programs, so that a roll-back needs neither a build nor the source.
"""

import json
import subprocess
import sys
from pathlib import Path

from command_line import aws, fail, tool

ROOT = Path(__file__).resolve().parent.parent
# The stack with the bucket that SAM creates for `resolve_s3`.
MANAGED = "aws-sam-cli-managed-default"


def version_of(template):
    """The name of the built version: the commit's tag or hash, or the release if this is not a Git repository."""
    described = subprocess.run(["git", "describe", "--tags", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    return described.stdout.strip() if described.returncode == 0 else template["Metadata"]["Release"]


def bucket_of(read):
    """The bucket with the programs of a stack."""
    if read["bucket"]:
        return read["bucket"]
    found = aws(read["region"], "cloudformation", "describe-stacks", "--stack-name", MANAGED)
    if not found:
        fail(f"nothing was deployed from this account to {read['region']}: there is no stack {MANAGED}")
    outputs = {one["OutputKey"]: one["OutputValue"] for one in found["Stacks"][0]["Outputs"]}
    return outputs["SourceBucket"]


def key_of(read, version):
    return f"{read['prefix']}/releases/{version}.json"


def package(environment, read, template):
    """Uploads the built programs, and returns the template with their addresses."""
    written, packaged = (Path("target", f"{name}-{environment}.json").resolve() for name in ("unpackaged", "packaged"))
    for one in template["Resources"].values():
        if one["Type"] == "AWS::Serverless::Function":
            one["Properties"]["CodeUri"] = str(Path(one["Properties"]["CodeUri"]).resolve())
    template["Metadata"]["Architecture"] = read["parameters"]["Architecture"]
    written.parent.mkdir(exist_ok=True)
    written.write_text(json.dumps(template), encoding="utf-8")
    where = ["--s3-bucket", read["bucket"]] if read["bucket"] else ["--resolve-s3"]
    called = subprocess.run([
        # The pinned SAM is in the folder of the Python that runs this.
        tool("sam", Path(sys.executable).parent), "package", "--template-file", str(written), "--output-template-file", str(packaged),
        "--use-json", *where, "--s3-prefix", read["prefix"], "--region", read["region"],
    ], stdout=subprocess.PIPE, text=True)
    if called.returncode:
        fail(f"the programs were not uploaded: {called.stdout.strip()}")
    return json.loads(packaged.read_text(encoding="utf-8"))


def store(environment, read, version):
    """Stores the deployed template, which `package` wrote, as this version."""
    packaged = str(Path("target", f"packaged-{environment}.json").resolve())
    aws(read["region"], "s3api", "put-object", "--bucket", bucket_of(read), "--key", key_of(read, version), "--body", packaged)
    print(f"This is the version {version}; `make deploy ENV={environment} VERSION={version}` deploys it again without a build.")


def fetch(environment, read, version):
    """The template of a version that was deployed before."""
    stored, bucket = Path("target", f"packaged-{environment}.json").resolve(), bucket_of(read)
    stored.parent.mkdir(exist_ok=True)
    if aws(read["region"], "s3api", "get-object", "--bucket", bucket, "--key", key_of(read, version), str(stored)) is None:
        fail(
            f"the version {version} of {read['stack']} is not stored. {listed(read, bucket)}. To deploy another, check it out in Git, "
            f"and run `make deploy ENV={environment}`"
        )
    template = json.loads(stored.read_text(encoding="utf-8"))
    built, wanted = template["Metadata"]["Architecture"], read["parameters"]["Architecture"]
    if built != wanted:
        fail(f"the version {version} was built for {built}, but the stack is for {wanted}: set Architecture={built} for this version")
    print(f"Deploying the version {version}.")
    return template


def listed(read, bucket):
    """A sentence with the stored versions, newest first."""
    found = aws(read["region"], "s3api", "list-objects-v2", "--bucket", bucket, "--prefix", key_of(read, "").removesuffix(".json"))
    objects = sorted((found or {}).get("Contents", []), key=lambda one: one["LastModified"], reverse=True)
    names = [one["Key"].rsplit("/releases/", 1)[1].removesuffix(".json") for one in objects]
    return f"The stored versions, newest first: {', '.join(names)}" if names else "No version is stored yet"
