# SPDX-License-Identifier: Apache-2.0
"""benchmarks/plan_hashes.py: hashes of plans, compared with the file of expected ones."""

import importlib.util
import json
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "benchmarks" / "plan_hashes.py"


@pytest.fixture
def plan_hashes(tmp_path, monkeypatch):
    """The script with one small case of each program, and an expected file in a temporary folder."""
    spec = importlib.util.spec_from_file_location("plan_hashes", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    cases = (
        ("quality", 2000, (1,), ("random.80",), ("fast",), ()),
        ("clear", 10000, (301,), ("random.80",), ("best",), (50,)),
    )
    monkeypatch.setattr(module, "CASES", cases)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "FILE", tmp_path / "plan_hashes.csv")
    return module


def make_build(folder, quality_hash, clear_hash):
    """A build folder with programs that print one row each."""
    rows = {
        "quality": {"scenario": "random.80", "seed": 1, "algorithm": "fast", "plan_hash": quality_hash},
        "clear": {
            "scenario": "random.80", "seed": 301, "preset": "best", "clear": 50, "plan_hash": clear_hash,
        },
    }  # fmt: skip
    (folder / "benchmarks").mkdir(parents=True)
    for name, row in rows.items():
        program = folder / "benchmarks" / f"bench_consolidation_{name}"
        program.write_text(f"#!/bin/sh\necho '{json.dumps(row)}'\n", encoding="utf-8")
        program.chmod(0o755)
    return str(folder)


def test_same_plans(plan_hashes, tmp_path, capsys):
    build = make_build(tmp_path / "build", "aa", "bb")
    assert plan_hashes.main([build, "--write"]) == 0
    assert plan_hashes.FILE.read_text(encoding="utf-8").splitlines() == [
        "scenario,nodes,seed,algorithm,clear,plan_hash",
        "random.80,2000,1,fast,,aa",
        "random.80,10000,301,best,50,bb",
    ]
    assert plan_hashes.main([build]) == 0
    assert "2 plans compared, 0 differences" in capsys.readouterr().out


def test_names_each_plan_that_differs(plan_hashes, tmp_path, capsys):
    plan_hashes.main([make_build(tmp_path / "before", "aa", "bb"), "--write"])
    capsys.readouterr()
    assert plan_hashes.main([make_build(tmp_path / "after", "aa", "cc")]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "differs: scenario random.80, nodes 10000, seed 301, algorithm best, clear 50: cc, expected bb",
        "2 plans compared, 1 differences",
    ]


def test_quick_skips_large_clusters(plan_hashes, tmp_path, capsys):
    plan_hashes.main([make_build(tmp_path / "before", "aa", "bb"), "--write"])
    assert plan_hashes.main([make_build(tmp_path / "after", "aa", "cc"), "--quick"]) == 0
    assert "1 plans compared, 0 differences" in capsys.readouterr().out


def test_missing_and_unexpected_runs(plan_hashes):
    expected = {("random.80", "2000", "1", "fast", ""): "aa"}
    found = {("random.80", "2000", "2", "fast", ""): "aa"}
    lines = plan_hashes.differences(expected, found, is_complete=True)
    assert [line.split(":")[0] for line in lines] == ["no such run", "not in plan_hashes.csv"]
