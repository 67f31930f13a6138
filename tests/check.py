"""Checks a change in minutes: format, lints, the unit tests of the crates that changed, and the contract tests named
after the changed files.

    check.py [BASE]    compares the working tree with the commit BASE (HEAD)

A contract test belongs to a file if its module's name begins like a word in the file's path within the crate:
`shared/webhooks/src/deliveries/feed/read.rs` selects `deliveries`, `delivery_…`, `feeds` and `feeds_…`. `make test` runs
all of them.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

from timetable import show, step

PROJECT = Path(__file__).resolve().parent.parent
CONTRACT = PROJECT / "tests/contract"
# Words in paths that name no area.
GENERAL = {"src", "shared", "functions", "tests", "contract", "bin", "mod", "main", "lib", "store", "item", "error", "local", "harness"}
# The folders whose contract tests have a different name.
NAMES = {
    "dispatch": ["dispatching", "retries", "receivers"],
    "gate": ["routes", "problems", "bodies", "checks"],
    "issuer": ["token", "application", "introspection"],
    "oauth": ["token", "introspection"],
    "outbound": ["receivers", "addresses"],
    "problem": ["problems"],
    "public": ["pages", "routes"],
    "queue": ["stand_ins", "queue_chaos"],
    "requests": ["resend", "recover", "replays", "cancel_delivery", "erasing"],
    "state": ["dispatching", "order", "pauses", "retries"],
    "storage": ["table_chaos", "deliveries"],
    "subscriptions": ["webhook", "health"],
}
# The tests that cover any change in a `panel` folder; `panel/parts/webhook_form.js` also selects
# `browser_panel_webhooks`.
OF_PANEL = {"panel_page", "browser_panel"}
# The files that every crate reads.
OF_ALL = {"Cargo.toml", "Cargo.lock", "clippy.toml"}


def changed_files(base: str) -> list[str]:
    def lines(*command: str) -> list[str]:
        return subprocess.run(["git", *command], cwd=PROJECT, check=True, capture_output=True, text=True).stdout.splitlines()

    return sorted({*lines("diff", "--name-only", base), *lines("ls-files", "--others", "--exclude-standard")})


def packages() -> dict[str, dict]:
    """The crates of the workspace by folder, deepest first."""
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps"]
    metadata = json.loads(subprocess.run(command, cwd=PROJECT, check=True, capture_output=True).stdout)
    folders = {str(Path(each["manifest_path"]).parent.relative_to(PROJECT)): each for each in metadata["packages"]}
    return dict(sorted(folders.items(), key=lambda entry: -len(entry[0])))


def crates_of(files: list[str]) -> list[dict]:
    known = packages()
    of_file = (next((crate for folder, crate in known.items() if file.startswith(folder + "/")), None) for file in files)
    return sorted({crate["name"]: crate for crate in of_file if crate}.values(), key=lambda crate: crate["name"])


def unit_tests(crates: list[dict]) -> list[list[str]]:
    """The commands that run the tests of these crates. With the service, so that the shared crates are not compiled a second
    time with fewer features."""
    libraries = [crate for crate in crates if any("lib" in target["kind"] for target in crate["targets"])]
    others = [crate for crate in crates if crate not in libraries]

    def command(of: list[dict], kind: str, *with_them: str) -> list[str]:
        return ["cargo", "test", kind, *(f"--package={name}" for name in [*(crate["name"] for crate in of), *with_them])]

    found = []
    if libraries:
        found.append(command(libraries, "--lib", "local", "local-functions"))
    if others:
        found.append(command(others, "--tests"))
    return found


def stem(word: str) -> str:
    return re.sub(r"(ies|y|ing|s)$", "", word)


def contract_modules(files: list[str]) -> list[str]:
    """The modules of contract tests named after these files."""
    modules = {path.stem for path in CONTRACT.iterdir() if path.name not in ("main.rs", "harness")}
    words, named = set(), set()
    for file in files:
        # A subfolder of a crate is more specific than the crate's name.
        area = re.sub(r"^shared/[^/]+/src/(?=.*/)", "", file)
        parts = re.split(r"[/_\-.]", area)
        words.update(name for part in parts for name in NAMES.get(part, []))
        if "panel" in parts:
            named |= OF_PANEL
            parts = [f"{page}_{part}" for part in parts for page in ("panel", "browser_panel") if len(part) > 3 and part not in GENERAL]
        words.update(parts)
        if file.startswith("tests/contract/") and not file.startswith("tests/contract/harness/"):
            words.add(Path(file).relative_to("tests/contract").parts[0].removesuffix(".rs"))
    stems = {stem(word) for word in words if len(word) > 3 and word not in GENERAL}
    return sorted(module for module in modules if module in named or any(module.startswith(each) for each in stems))


def main() -> int:
    base = sys.argv[1] if len(sys.argv) > 1 else "HEAD"
    files = changed_files(base)
    if not files:
        print(f"Nothing differs from {base}.")
        return 0
    rust = [file for file in files if file.endswith(".rs") or Path(file).name in OF_ALL]
    crates = crates_of([file for file in rust if not file.startswith("tests/contract/")])
    names = [crate["name"] for crate in crates]
    modules = contract_modules(files)
    print(f"{len(files)} changed files, the crates {', '.join(names) or '-'}, the contract tests {', '.join(modules) or '-'}")
    workspace = ["--workspace", "--exclude", "functions-*", "--exclude", "bench", "--exclude", "hello"]
    steps = [("format", ["cargo", "fmt", "--all", "--check"])]
    if rust:
        steps.append(("clippy", ["cargo", "clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))
    steps.extend(("unit tests", command) for command in unit_tests(crates))
    if modules:
        steps.append(("build", ["cargo", "build", *workspace, "--bins", "--test", "contract"]))
        steps.append(("contract tests", ["cargo", "test", *workspace, "--test", "contract", "--", ",".join(f"{each}::" for each in modules)]))
    for name, command in steps:
        if step(name, command) != 0:
            print(f"\n{name}: failed", file=sys.stderr)
            return 1
    show()
    print("Checked. `make test` runs every test.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
