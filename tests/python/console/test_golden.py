# SPDX-License-Identifier: Apache-2.0
"""Runs the golden cases of the console script; tests/golden/cli/README.md says what a case is."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from pathlib import Path

import pytest
from gpusched import cli

CASES = Path(__file__).resolve().parents[2] / "golden" / "cli"
NAMES = sorted(path.parent.name for path in CASES.glob("*/command"))
UPDATE = os.environ.get("UPDATE_GOLDEN") == "1"


def content(path: Path):
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".json":
        return text
    document = json.loads(text)
    document.pop("stats", None)  # how long the search took is not what a golden case pins
    return document


def test_there_are_cases():
    assert NAMES


@pytest.mark.parametrize("name", NAMES)
def test_case(name, tmp_path, monkeypatch, capsys):
    case = CASES / name
    folder = tmp_path / name
    shutil.copytree(case, folder, ignore=shutil.ignore_patterns("expected", "stdout.txt", "stderr.txt"))
    words = shlex.split((case / "command").read_text(encoding="utf-8"))
    assert words[0] == "gpusched"
    monkeypatch.chdir(folder)
    status = cli.main(words[1:])
    done = capsys.readouterr()
    stderr, code, expected = case / "stderr.txt", case / "exit_code", case / "expected"

    if UPDATE:
        (case / "stdout.txt").write_text(done.out, encoding="utf-8")
        if stderr.exists() or done.err:
            stderr.write_text(done.err, encoding="utf-8")
        if code.exists() or status:
            code.write_text(f"{status}\n", encoding="utf-8")
        for file in expected.rglob("*"):
            if file.is_file():
                shutil.copy(folder / file.relative_to(expected), file)

    assert status == (int(code.read_text()) if code.exists() else 0), done.err
    assert done.out == content(case / "stdout.txt")
    if stderr.exists():
        assert done.err == content(stderr)
    for file in expected.rglob("*"):
        if file.is_file():
            wanted, found = content(file), content(folder / file.relative_to(expected))
            if isinstance(wanted, dict):
                found = {key: value for key, value in found.items() if key in wanted}
            assert found == wanted
