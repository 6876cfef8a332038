# SPDX-License-Identifier: Apache-2.0
"""Extracts the documentation of C++ headers and of structs in the bindings into a table for the Python
bindings.

Usage: extract_docs.py SOURCE_DIR... OUTPUT.cpp

Reads the `///` comment above a declaration and the `///<` comment after it, and writes a C++ file that
defines gpusched::python::doc(). Names are qualified, without the leading `gpusched::`. For overloads, the
first documented one counts. `@param`, `@return`, `@throws` and `@note` become the sections of a numpydoc
docstring.
"""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path

SCOPE = re.compile(
    r"^\s*(?:(?:inline\s+)?namespace\s+([\w:]+)"
    r"|(?:enum\s+class|class|struct|concept)\s+(?:\[\[\w+\]\]\s*)?(\w+))"
)
CONCEPT = re.compile(r"^\s*concept\s+(\w+)")
FUNCTION = re.compile(r"(?:^|[\s*&])(operator\S+|~?\w+)\s*\(")
FIELD = re.compile(r"(\w+)\s*(?:=[^=].*|\{.*)?[;,]\s*$")
ENUMERATOR = re.compile(r"^\s*(\w+)\s*(?:=.*)?,?\s*$")
SECTIONS = {
    "param": "Parameters",
    "return": "Returns",
    "returns": "Returns",
    "throws": "Raises",
    "note": "Notes",
}
CPP_ONLY = {"context", "options", "rng"}  # parameters that Python lacks or has as keywords


def strip_code(line: str) -> str:
    """The line without comments and literals, for counting braces."""
    line = re.sub(r'"(?:\\.|[^"\\])*"', '""', line)
    line = re.sub(r"'(?:\\.|[^'\\])'", "''", line)
    return line.split("//", 1)[0]


def declared_name(code: str) -> str | None:
    """The name that a declaration introduces."""
    if match := CONCEPT.match(code):
        return match.group(1)
    if match := SCOPE.match(code):
        return match.group(2)
    if match := re.match(r"^\s*using\s+(\w+)\s*=", code):
        return match.group(1)
    code = re.sub(r"\[\[.*?\]\]|\b(?:alignas|decltype|requires|noexcept)\s*\([^()]*\)", " ", code)
    if match := FUNCTION.search(code):
        return match.group(1)
    if match := FIELD.search(code):
        return match.group(1)
    if match := ENUMERATOR.match(code):
        return match.group(1)
    return None


SEVERAL_FIELDS = re.compile(r"\s*[\w:<>]+(?:\s+\w+\s*=\s*[\w.:]+\s*,)+\s*\w+\s*=\s*[\w.:]+\s*;\s*")


def declared_names(code: str) -> list[str | None]:
    """The names that a declaration introduces: several for fields with a common comment."""
    if SEVERAL_FIELDS.fullmatch(code):
        return list(re.findall(r"(\w+)\s*=", code))
    return [declared_name(code)]


def to_numpydoc(lines: list[str]) -> str:
    """Turns the text of a `///` comment into a docstring."""
    body: list[str] = []
    sections: dict[str, list[list[str]]] = {}
    current: list[str] | None = None
    in_code = False
    lines = [
        part for line in lines for part in re.split(r"(?<=\S) +(?=@(?:param|returns?|throws|note)\b)", line)
    ]
    for line in lines:
        stripped = line.strip()
        if in_code or stripped.startswith(("@code", "\\code")):
            in_code = not stripped.startswith(("@endcode", "\\endcode"))
            current = None
            continue
        if match := re.match(r"[@\\](\w+)\s*(.*)", stripped):
            tag, rest = match.groups()
            title = SECTIONS.get(tag)
            if title in ("Returns", "Notes"):
                current = ["", rest]
            else:
                name, _, text = rest.partition(" ")
                current = [name.strip("`"), text.strip()]
            if title and not (title == "Parameters" and current[0] in CPP_ONLY):
                sections.setdefault(title, []).append(current)
        elif current is not None and stripped and not stripped.startswith("Complexity:"):
            current[1] += " " + stripped
        else:
            current = None
            body.append(line)
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(body).strip())
    for title in ("Parameters", "Returns", "Raises", "Notes"):
        for n, (name, description) in enumerate(sections.get(title, [])):
            text += f"\n\n{title}\n{'-' * len(title)}" if n == 0 else ""
            text += f"\n{name}\n" if name else "\n"
            text += textwrap.indent(textwrap.fill(description, 96), "    " if name else "")
    return re.sub(r"(?<=\w)::(?=\w)", ".", text.strip())


def extract(path: Path, docs: dict[str, str]) -> None:
    """Adds the documentation of a file to `docs`."""
    scopes: list[tuple[str, int]] = []  # (name, depth before its opening brace)
    depth = 0
    comment: list[str] = []
    pending: str | None = None  # name of a scope before its opening brace
    statement = ""  # the declaration so far
    trailing: tuple[str, list[str]] | None = None  # the `///<` comment of the previous line

    def record(name: str | None, text: list[str]) -> None:
        full = "::".join([s for s, _ in scopes if s] + [name or ""])
        if name and full.startswith("gpusched::"):
            docs.setdefault(full.removeprefix("gpusched::"), to_numpydoc(text))

    source = path.read_text(encoding="utf-8")
    for raw in source.splitlines():
        stripped = raw.strip()
        if stripped.startswith("///") and not stripped.startswith("///<"):
            comment.append(stripped[3:].removeprefix(" "))
            continue
        if stripped.startswith("///<") and trailing:
            docs_name, docs_text = trailing
            docs_text.append(stripped[4:].strip())
            docs[docs_name] = to_numpydoc(docs_text)
            continue
        trailing = None
        if stripped.startswith(("//", "#")):
            continue
        if not stripped:
            comment = [] if not statement else comment
            continue
        code = strip_code(raw)
        if "///<" in raw:
            text = [raw.split("///<", 1)[1].strip()]
            for name in declared_names(f"{statement} {code}"):  # the declaration may begin on an earlier line
                if not name:
                    continue
                record(name, text)
                full = "::".join([s for s, _ in scopes if s] + [name]).removeprefix("gpusched::")
                trailing = (full, text)
        if not statement and re.match(r"^\s*template\s*<", code) and not re.search(r">\s*\w", code):
            continue  # the declaration follows
        if re.match(r"^\s*requires\b", code) and not statement:
            continue
        statement = f"{statement} {code.strip()}".strip()
        if match := SCOPE.match(re.sub(r"^\s*template\s*<.*?>\s*", "", statement)):
            pending = match.group(1) or match.group(2)
        complete = (
            "{" in code
            or code.rstrip().endswith((";", ",", "}"))
            or ":" in code
            and code.strip().endswith(":")
        )
        if comment and (complete or "(" in statement):
            for name in declared_names(statement):
                record(name, comment)
            comment = []
        for char in code:
            if char == "{":
                scopes.append((pending or "", depth))
                pending = None
                depth += 1
            elif char == "}":
                depth -= 1
                if scopes:
                    scopes.pop()
        if complete:
            statement = ""
            pending = None if ";" in code else pending


def main() -> None:
    *sources, output = map(Path, sys.argv[1:])
    docs: dict[str, str] = {}
    for source in sources:
        for path in sorted([*source.rglob("*.hpp"), *source.rglob("*.cpp")]):
            extract(path, docs)
    entries = "\n".join(f'    {{"{name}", R"~~({text})~~"}},' for name, text in sorted(docs.items()) if text)
    # A plain array fills the map, because compilers take 15 s for an initialiser list of a map of this size.
    output.write_text(
        "// Written by extract_docs.py; do not edit.\n"
        '#include "support/bindings.hpp"\n\n#include <map>\n#include <stdexcept>\n\n'
        "namespace {\n"
        "struct Entry {\n    const char *name, *text;\n};\n"
        f"constexpr Entry entries[] = {{\n{entries}\n}};\n"
        "}  // namespace\n\n"
        "const std::string& gpusched::python::doc(std::string_view name) {\n"
        "    static const auto docs = [] {\n"
        "        std::map<std::string, std::string, std::less<>> all;\n"
        "        for (const auto& entry : entries) all.emplace(entry.name, entry.text);\n"
        "        return all;\n"
        "    }();\n"
        "    const auto found = docs.find(name);\n"
        '    if (found == docs.end()) throw std::logic_error("no header documents " + std::string(name));\n'
        "    return found->second;\n}\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
