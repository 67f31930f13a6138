"""Puts the programs of a release into target/packages, and lists the SHA-256 of each file: the functions of `make
build` as zips, as SAM zips them for a deployment, waypost-admin as a program for this machine's system, and waypost,
the command line for integrators, as a static program for each architecture.

SAM writes no time into a zip, so the same program gives the same zip; cargo-lambda's zips contain the build time.
"""

import hashlib
import platform
import shutil
import sys
from pathlib import Path

from samcli.lib.package.utils import make_zip_with_lambda_permissions


def main():
    built, admin, command_line, packages = map(Path, sys.argv[1:])
    packages.mkdir(parents=True, exist_ok=True)
    names = [program.parent for program in sorted(built.glob("*/bootstrap"))]
    files = [Path(make_zip_with_lambda_permissions(str(packages / folder.name), str(folder))) for folder in names]
    system = f"{platform.system()}-{platform.machine()}".lower()
    files.append(Path(shutil.copy(admin, packages / f"{admin.name}-{system}")))
    for program in sorted(command_line.glob("*/waypost/bootstrap")):
        architecture = program.parent.parent.name
        files.append(Path(shutil.copy(program, packages / f"waypost-linux-{architecture}")))
    for file in files:
        print(f"{file.stat().st_size / 1e6:6.2f} MB  {file}")
    sums = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
    (packages / "SHA256SUMS").write_text("".join(sums), encoding="ascii")


if __name__ == "__main__":
    main()
