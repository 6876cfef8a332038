# SPDX-License-Identifier: Apache-2.0
"""Where the console script writes: files, pipes, what is full or closed, and never over what it reads."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import gpusched as gs
import pytest
from gpusched import cli


def test_the_module_runs_and_shows_no_traceback() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "gpusched", "--version"], capture_output=True, text=True, check=True
    )
    assert run.stdout == f"gpusched {gs.__version__}\n"
    run = subprocess.run(
        [sys.executable, "-m", "gpusched", "report", "x.json"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 2 and run.stderr.startswith("gpusched: x.json")


def shell(command: str) -> subprocess.CompletedProcess[str]:
    """Runs a line of bash in which GPUSCHED is the console script."""
    line = command.replace("GPUSCHED", f"'{sys.executable}' -m gpusched")
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize("lines", [0, 1])
def test_a_closed_pipe_ends_the_command_silently(cluster_file: str, lines: int) -> None:
    # A reader of nothing is gone before the first line is written; `sleep` gives it the time.
    line = f"(sleep 0.3; GPUSCHED report '{cluster_file}') | head -n {lines}; exit ${{PIPESTATUS[0]}}"
    run = shell(line)
    assert run.stderr == "" and run.returncode in ((141,) if lines == 0 else (0, 141)), run


@pytest.mark.parametrize(
    ("arguments", "file"),
    [
        ("export PLAN", "PLAN"),
        ("consolidate CLUSTER -o plan.json", "plan.json"),
        ("generate --nodes 3 -o new.json", "new.json"),
        ("drain-order CLUSTER --all -o batches", "batches/batches.csv"),
        ("allocate CLUSTER JOB.json -o placed.json", "placed.json"),
        ("admit CLUSTER JOB.json -o placed.json", "placed.json"),
    ],
)
def test_a_closed_pipe_does_not_lose_the_result(
    cluster_file: str,
    tmp_path: Path,
    arguments: str,
    file: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    pod = {"count": 1, "gpu_count": 1, "cpu_milli": 1, "memory_mib": 1}
    Path("JOB.json").write_text(json.dumps({"name": "new", "pods": [pod]}))
    gs.consolidate(gs.Cluster.from_json(cluster_file)).to_json("PLAN")
    reader, writer = os.pipe()
    os.close(reader)
    with io.TextIOWrapper(os.fdopen(writer, "wb", 0), write_through=True) as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        assert cli.main([cluster_file if word == "CLUSTER" else word for word in arguments.split()]) == 141
    assert Path(file).stat().st_size > 0 and capfd.readouterr() == ("", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_output_that_cannot_be_written_is_2_and_one_line(
    cluster_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = "gpusched: standard output: cannot be written: No space left on device\n"
    run = shell(f"GPUSCHED report '{cluster_file}' >/dev/full")
    assert (run.returncode, run.stderr) == (2, told)
    plan = str(tmp_path / "plan.json")
    gs.consolidate(gs.Cluster.from_json(cluster_file)).to_json(plan)
    for arguments in (["topology", "show", cluster_file, "--dot"], ["export", plan], ["report", "--help"]):
        with monkeypatch.context() as patch, open("/dev/full", "w") as full:
            patch.setattr(sys, "stdout", full)
            assert cli.main(arguments) == 2
        assert capsys.readouterr().err == told
    with monkeypatch.context() as patch, open("/dev/full", "w") as full:
        patch.setattr(sys, "stderr", full)
        assert cli.main(["report", "missing.json"]) == 2
    assert cli.main(["consolidate", cluster_file, "-o", "/dev/full"]) == 2
    assert capsys.readouterr().err.startswith("gpusched: /dev/full: cannot be written")


def test_closed_standard_output(
    cluster_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = shell(f"GPUSCHED report '{cluster_file}' >&-")
    assert run.stderr == "gpusched: standard output: cannot be written: Bad file descriptor\n"
    assert run.returncode == 2
    monkeypatch.setattr(sys, "stdout", None)
    assert cli.main(["topology", "show", str(tmp_path)]) == 2


def test_output_paths_are_looked_at_before_the_work(
    cluster_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan.json"
    gs.consolidate(gs.Cluster.from_json(cluster_file)).to_json(plan)

    def too_late(*_: object, **__: object) -> Any:
        raise AssertionError("the work began")

    for module, name in (
        (gs.consolidation, "consolidate"),
        (gs.sim, "generate_cluster"),
        (gs.io, "read_openb"),
        (gs.Cluster, "from_json"),
        (gs.Plan, "from_json"),
    ):
        monkeypatch.setattr(module, name, too_late)
    missing = str(tmp_path / "no" / "file")
    for arguments in (
        ["generate", "-o"],
        ["report", cluster_file, "--plot"],
        ["replay", "nodes.csv", "pods.csv", "-o"],
        ["consolidate", cluster_file, "-o"],
        ["export", str(plan), "-o"],
        ["topology", "show", cluster_file, "--dot", "-o"],
        ["anonymize", cluster_file],
        ["plot", "occupancy", cluster_file, "-o"],
    ):
        for path, reason in ((missing, "No such file or directory"), (str(tmp_path), "Is a directory")):
            assert cli.main([*arguments, path]) == 2
            assert capsys.readouterr().err == f"gpusched: {path}: cannot be written: {reason}\n"


def test_looking_at_an_output_path_leaves_everything_as_it_was(tmp_path: Path) -> None:
    from gpusched._commands.shared import require_writable

    old, new, link = tmp_path / "old", tmp_path / "new", tmp_path / "link"
    old.write_text("as it was")
    link.symlink_to("nowhere")
    require_writable(str(old), str(new), str(link), None)
    assert old.read_text() == "as it was" and sorted(p.name for p in tmp_path.iterdir()) == ["link", "old"]


def test_no_command_overwrites_its_input(
    cluster_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    gs.consolidate(gs.Cluster.from_json(cluster_file)).to_json("p.json")
    Path("job.json").write_text("{}")
    Path("link.json").symlink_to(cluster_file)
    Path("hard.json").hardlink_to(cluster_file)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for arguments, output in (
        (["consolidate", cluster_file, "-o"], "./cluster.json"),
        (["consolidate", cluster_file, "-o"], "link.json"),
        (["consolidate", cluster_file, "-o"], "hard.json"),
        (["report", cluster_file, "--plot"], "cluster.json"),
        (["export", "p.json", "-o"], "p.json"),
        (["export", "p.json", "--to", "koordinator", "--cluster", cluster_file, "-o"], "cluster.json"),
        (["topology", "show", cluster_file, "--dot", "-o"], "cluster.json"),
        (["anonymize", "cluster.json"], cluster_file),
        (["plot", "gpus", cluster_file, "-o"], "cluster.json"),
        (["preempt", cluster_file, "t", "-o"], "cluster.json"),
        (["allocate", cluster_file, "job.json", "-o"], "job.json"),
        (["allocate", cluster_file, "job.json", "--write-cluster"], "cluster.json"),
        (["plan-serving", "job.json", "-o"], "job.json"),
        (["replay", "n.csv", "p.json", "-o"], "p.json"),
        (["replay-audit", "p.json", "--config", "job.json", "--plot"], "p.json"),
    ):
        assert cli.main([*arguments, output]) == 2
        assert capsys.readouterr().err.startswith(f"gpusched: {output}: is also read by this command")
    assert cli.main(["allocate", cluster_file, "j", "-o", "new", "--write-cluster", "./new"]) == 2
    assert "gpusched: ./new: is also written by this command" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
