"""Lists the texts that users, operators and agents read: `where they are shown | file:line | text`.

    texts.py [WORD...]    only those from files whose path contains one of the words

Texts are found by a heuristic, from literals with a space. Tests and messages of `expect` and `panic!` are omitted.
"""

import re
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
NOT_READ = re.compile(
    r"(^|/)(tests?|testing|test_overrides|vendor|build)(/|\.rs)|_tests?\.rs$|build\.rs$|released_schemas|decoys"
)
# The calls and attributes whose string literals are meant for maintainers.
FOR_MAINTAINERS = re.compile(
    r"\b(expect|panic!|unreachable!|(debug_)?assert\w*!|concat!|env!|strip_prefix|split_once|ends_with|contains|reason)$"
)
RUST = re.compile(r'//[^\n]*|/\*.*?\*/|b?r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'|[(\[{}\])]', re.S)
TEXT_KEYS = r"(?:\w*[dD]escription|summary|title|detail|meaning|remedy|message|error_description|x-\w+)"
ATTRIBUTES = r'\b(?:title|label|hint|lead|what|placeholder|heading|alt|aria-label|window|text|name)="?([^"<>]* [^"<>]*)"'
LOG = {"trace!", "debug!", "info!", "warn!", "error!", "info_span!"}
OUTPUT = {"println!", "eprintln!", "print!", "eprint!", "writeln!", "write!"}


def is_text(text: str) -> bool:
    """Whether it reads as prose: two words in a row, and neither a query nor a path."""
    is_code = re.match(r"(SELECT|INSERT|UPDATE|SET|REMOVE|GET|POST)\b|/|https?:", text)
    return bool(re.search(r"[A-Za-z`’'}]+[,:;.]? [`{(A-Za-z]", text)) and not is_code


def unquoted(literal: str) -> str:
    raw = re.match(r'b?r(#*)"(.*)"\1$', literal, re.S)
    if raw:
        return raw[2]
    text = re.sub(r"\\\n\s*", "", literal[literal.index('"') + 1 : -1])
    return text.replace("\\n", "\n").replace('\\"', '"').replace("\\\\", "\\")


def kind_of(call: str) -> str:
    name = call.rsplit("::", 1)[-1].lstrip("#[")
    kinds = {"log": LOG, "output": OUTPUT, "help": {"arg", "command"}}
    return next((kind for kind, names in kinds.items() if name in names), name or "text")


def rust(path: str, source: str):
    source = re.split(r"\n#\[cfg\((?:all\()?test\b[^\n]*\n(?:#[^\n]*\n)*(?:pub )?mod \w+ \{", source)[0]
    stack = [("", 0)]
    for token in RUST.finditer(source):
        text, start = token[0], token.start()
        if text[0] in "([{":
            stack.append((re.search(r"[\w:!#\[]*$", source[max(0, start - 80) : start].rstrip())[0], start))
        elif text[0] in ")]}":
            stack.pop() if len(stack) > 1 else None
        elif '"' in text and not text.startswith(("//", "/*", "'", "b")):
            call = stack[-1][0]
            before = source[max(0, start - 40) : start].rstrip()
            assigned = re.search(r"(\w+)\s*[=:]\s*$", before)
            calls = [name for name, _ in stack[-3:]]
            is_ours = not any(FOR_MAINTAINERS.search(name) for name in calls) and not (assigned and assigned[1] == "reason")
            if is_ours and is_text(unquoted(text)):
                yield assigned[1] if assigned else kind_of(call), start, unquoted(text)
    if "clap::" in source:
        for found in re.finditer(r"(?:^ *///[^\n]*\n)+(?=((?:^ *#\[.*?\]\n)*)( *)\S)", source, re.M | re.S):
            is_command = re.search(r"derive\([^)]*\b(Parser|Args|Subcommand|ValueEnum)\b", found[1])
            if found[2] or is_command:
                yield "help", found.start(), " ".join(line.strip()[4:] for line in found[0].splitlines())


def javascript(source: str, start: int = 0, is_nested: bool = False):
    """The literals of a source; returns the end of the part."""
    pattern = r"(?<=[(,=:\[!&|?{};\n])\s*/(?![/*])(?:\\.|\[(?:\\.|[^\]\n])*\]|[^/\n\\])+/"
    token = re.compile(r"//[^\n]*|/\*.*?\*/|" + pattern + r'|"(?:\\.|[^"\\\n])*"|[`{}]', re.S)
    depth, at = 0, start
    while found := token.search(source, at):
        text, at = found[0], found.end()
        if text == "`":
            parts, begin = [], found.start()
            while source[at] != "`":
                if source.startswith("${", at):
                    at = yield from javascript(source, at + 2, True)
                    parts.append("{}")
                else:
                    parts.append(source[at : at + 2] if source[at] == "\\" else source[at])
                    at += len(parts[-1])
            at += 1
            text = "".join(parts)
            for attribute in re.finditer(ATTRIBUTES, text):
                yield "attribute", begin, attribute[1]
            # Tags within a sentence are removed without ending it.
            text = re.sub(r"</?(?:code|bdi|strong|em|b|a)\b[^>]*>", "", text)
            for part in re.split(r"<[^>]*>", text):
                yield "text", begin, part
        elif text[0] == '"':
            yield "text", found.start(), text[1:-1].replace('\\"', '"')
        elif text == "{":
            depth += 1
        elif text == "}":
            if is_nested and not depth:
                return at
            depth -= 1
    return len(source)


def yaml(source: str):
    pattern = rf"^( *)(?:- )?({TEXT_KEYS}): (?:!Sub )?(.*(?:\n\1 +.*|\n(?=\n\1 +))*)"
    for found in re.finditer(pattern, source, re.M):
        if not re.match(r"\s*[\w'\"-]+:( |$)", found[3].lstrip("|>-\n")) or found[3][0] in "'\"":
            yield found[2], found.start(2), found[3].lstrip("|>-").strip().strip("'\"")


def texts(path: str):
    source = (PROJECT / path).read_text(encoding="utf-8")
    if path.endswith(".rs"):
        found = rust(path, source)
    elif path.endswith((".js", ".html")):
        of_page = (("text", each.start(1), each[1]) for each in re.finditer(r">([^<>]+)<", source))
        found = javascript(source) if path.endswith(".js") else of_page
    elif path.endswith(".yaml"):
        found = yaml(source)
    elif path.endswith(".json"):
        members = re.finditer(rf'"({TEXT_KEYS})": "((?:\\.|[^"\\])*)"', source)
        found = ((each[1], each.start(), each[2]) for each in members)
    elif "/prompts/" in path:
        found = (("prompt", each.start(), each[0]) for each in re.finditer(r"\S[^\n]*", source))
    else:
        literals = re.finditer(r'(?<!")"(?:\\.|[^"\\\n])+"(?!")', source)
        found = (("text", each.start(), unquoted(each[0])) for each in literals)
    for kind, start, text in found:
        line = " ".join(text.split())
        if is_text(line):
            area = path if path.endswith(".yaml") else "/".join(path.split("/")[:2])
            yield f"{area}, {kind} | {path}:{source.count(chr(10), 0, start) + 1} | {line}"


def main() -> None:
    folders = ["shared", "functions", "operator", "local", "cli", "panel", "template.yaml", "openapi.yaml"]
    listed = subprocess.run(["git", "ls-files", *folders], cwd=PROJECT, check=True, capture_output=True, text=True).stdout
    endings = (".rs", ".js", ".html", ".yaml", ".json", ".py", "prompts/set_up_webhook.md", "prompts/why_webhook_fails.md")
    for path in listed.splitlines():
        is_wanted = len(sys.argv) == 1 or any(word in path for word in sys.argv[1:])
        if is_wanted and path.endswith(endings) and not NOT_READ.search(path):
            print("".join(f"{line}\n" for line in texts(path)), end="")


if __name__ == "__main__":
    main()
