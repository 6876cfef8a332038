# SPDX-License-Identifier: Apache-2.0
"""docs/papers*.md: calls and commands of the tables exist."""

from __future__ import annotations

import inspect
import re
import shlex
from pathlib import Path

import gpusched as gs
import pytest
from gpusched import cli

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
COMMANDS = cli.parser().commands

VARIANTS = "Published variants and ours"
PAGES = {
    "ASI": ("papers-asi.md", "papers-asi-preemption.md"),
    "FlexTopo": ("papers-flextopo.md",),
    "LLM serving": ("papers-serving.md", "papers-serving-results.md"),
    "Controller": ("papers-controller.md",),
    VARIANTS: ("papers.md",),
}


def rows_of(paper: str) -> list[list[str]]:
    title = VARIANTS if paper == VARIANTS else "Items"
    rows: list[list[str]] = []
    for page in PAGES[paper]:
        section = (DOCS / page).read_text(encoding="utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]
        cells = [
            [cell.strip() for cell in line.strip("|").split("|")]
            for line in section.splitlines()
            if line.startswith("|")
        ]
        rows += cells[2:]
    return rows


ROWS = [
    pytest.param(row, id=f"{paper}: {row[0]}")
    for paper in PAGES
    if paper != VARIANTS
    for row in rows_of(paper)
]


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def check_python(call: str) -> None:
    path, _, keywords = call.partition("(")
    found: object = gs
    for part in path.split(".")[1:]:
        found = getattr(found, part)
    assert callable(found), call
    for keyword in re.findall(r"(\w+)=", keywords):
        assert keyword in inspect.signature(found).parameters, call


def check_header(call: str) -> None:
    path, _, name = call.partition(":")
    if path.startswith("benchmarks/"):
        assert (ROOT / path).is_file(), call
        return
    text = (ROOT / "include" / "gpusched" / path).read_text(encoding="utf-8")
    assert not name or re.search(rf"\b{name}\b", text), call


def check_console(words: list[str]) -> None:
    """The parser understands the command, and its options and their values."""
    command = COMMANDS[words[0]]
    options = [word for word in words[1:] if word.startswith("--")]
    assert set(options) <= set(command._option_string_actions), words


@pytest.mark.parametrize("row", [row for row in ROWS if quoted(row.values[0][1])])
def test_calls_exist(row: list[str]) -> None:
    for call in quoted(row[1]):
        if call.startswith("gs."):
            check_python(call)
        elif call.startswith("gpusched "):
            check_console(shlex.split(call)[1:])
        else:
            check_header(call)


def has_options(words: list[str], source: Path) -> None:
    """Programs share options through headers, scripts through modules of their folder that they import."""
    if source.suffix == ".py":
        names = re.findall(r"^(?:from|import) (\w+)", source.read_text(encoding="utf-8"), re.M)
        files = [source, *(file for name in names if (file := source.parent / f"{name}.py").is_file())]
    else:
        files = [source, *source.parent.glob("*.hpp"), *(source.parents[1] / "support").glob("*.hpp")]
    text = "".join(file.read_text(encoding="utf-8") for file in files)
    for word in words:
        assert not word.startswith("--") or f'"{word}"' in text, words


def in_ctest(pattern: str) -> bool:
    """True if a test of ctest has a name with this pattern: `component.case` or `property.component.case`."""
    folders = [path.name + "." for path in (ROOT / "tests" / "unit").iterdir() if path.is_dir()]
    properties = ["property." + name for name in folders]
    cases = [
        case
        for path in (ROOT / "tests").rglob("*.cpp")
        for case in re.findall(r'TEST_CASE\("([^"]+)"', path.read_text("utf-8"))
    ]
    return any(pattern in name for name in (*folders, *properties, *cases))


def check_command(text: str) -> None:
    words = shlex.split(text)
    if words[0] == "gpusched":
        args = cli.parser().parse_args(words[1:])  # exits if it does not understand
        assert args.command == words[1]
    elif words[0].startswith("bench_"):
        folder, name = words[0].removeprefix("bench_").split("_", 1)
        has_options(words[1:], ROOT / "benchmarks" / folder / f"{name}.cpp")
    elif words[:2] == ["python", "-c"]:
        exec(compile(words[2], text, "exec"), {})  # prints what the row says
    elif words[0] == "python":
        has_options(words[2:], ROOT / words[1])
    elif words[0] == "pytest":
        assert (ROOT / words[1]).exists(), text
    elif words[:3] == ["ctest", "--preset", "dev"]:
        assert in_ctest(words[4]), text
    else:
        pytest.fail(f"unknown command: {text}")


@pytest.mark.parametrize("row", [row for row in ROWS if quoted(row.values[0][3])])
def test_commands_exist(row: list[str]) -> None:
    for text in quoted(row[3]):
        check_command(text)


@pytest.mark.parametrize("row", [pytest.param(row, id=row[0]) for row in rows_of(VARIANTS)])
def test_published_variants_exist(row: list[str]) -> None:
    published, _, command, _ = row
    assert quoted(published) and quoted(command)
    for text in quoted(published):
        check_python(text)
    for text in quoted(command):
        check_command(text)


@pytest.mark.parametrize("page", [page for pages in PAGES.values() for page in pages])
def test_footnotes_have_a_text(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    assert set(re.findall(r"\[\^(\w+)\](?!:)", text)) == set(re.findall(r"^\[\^(\w+)\]: \S", text, re.M))
