"""Makes the runtime's image from files of this machine, for an engine that reaches no registry.

    python3 local/sam/image.py

Lambda's image differs: it is Amazon Linux. All that the functions need of either is a C library and the certificates of
public authorities.
"""

import io
import re
import subprocess
import sys
import tarfile
from pathlib import Path

from engine import Engine, base_image
from faults import Fault

# The commands that SAM needs to build its image on top of this one.
COMMANDS = ("sh", "mv", "chmod")
# The libraries that a Rust program needs in addition to libc.so.6, which every command needs.
LIBRARIES = ("libm.so.6", "libgcc_s.so.1")
# The paths on Debian and on Fedora.
CERTIFICATES = (Path("/etc/ssl/certs/ca-certificates.crt"), Path("/etc/pki/tls/certs/ca-bundle.crt"))


def files() -> dict[Path, Path]:
    """Each path in the image, and this machine's file for it."""
    certificates = next((path for path in CERTIFICATES if path.exists()), None)
    if certificates is None:
        raise Fault("This machine has no certificates of public authorities; install the package ca-certificates")
    commands = [Path("/bin") / name for name in COMMANDS]
    needed = _needed_by(commands)
    # The loader looks in the C library's folder; a compiler may keep its libraries elsewhere.
    folder = next(path.parent for path in needed if path.name == "libc.so.6")
    found = {path: path for path in [*commands, *needed]} | {folder / name: _of_compiler(name) for name in LIBRARIES}
    return found | {CERTIFICATES[0]: certificates}


def _needed_by(commands: list[Path]) -> list[Path]:
    """The libraries of these programs and their loader."""
    return [Path(path) for path in re.findall(r"(/\S+) \(0x", _said_by("ldd", *map(str, commands)))]


def _of_compiler(library: str) -> Path:
    return Path(_said_by("cc", f"-print-file-name={library}").strip())


def _said_by(*command: str) -> str:
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise Fault(f"An image of this machine's files needs `ldd`, a C compiler and glibc: {error}") from error


def archive() -> bytes:
    """A tar archive with the files."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", dereference=True) as tar:
        for inside, file in files().items():
            tar.add(file, str(inside))
        folder = tarfile.TarInfo("tmp")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o1777
        tar.addfile(folder)
    return written.getvalue()


if __name__ == "__main__":
    try:
        Engine().import_base_image(archive())
        print(f"{base_image()} is built from this machine's files.")
    except Fault as fault:
        sys.exit(str(fault))
