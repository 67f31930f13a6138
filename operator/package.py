"""Zips the programs of `make build` into target/packages/NAME.zip, as SAM does for a deployment, and lists the SHA-256 of each zip.

SAM writes no time into a zip, so the same program gives the same zip; cargo-lambda's zips contain the build time.
"""

import hashlib
import sys
from pathlib import Path

from samcli.lib.package.utils import make_zip_with_lambda_permissions


def main():
    built, packages = Path(sys.argv[1]), Path(sys.argv[2])
    packages.mkdir(parents=True, exist_ok=True)
    sums = []
    for program in sorted(built.glob("*/bootstrap")):
        name = program.parent.name
        archive = Path(make_zip_with_lambda_permissions(str(packages / name), str(program.parent)))
        sums.append(f"{hashlib.sha256(archive.read_bytes()).hexdigest()}  {archive.name}\n")
        print(f"{archive.stat().st_size / 1e6:6.2f} MB  {archive}")
    (packages / "SHA256SUMS").write_text("".join(sums), encoding="ascii")


if __name__ == "__main__":
    main()
