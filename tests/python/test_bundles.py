"""Replay bundles: a snapshot, the options of a call and its plan in one file, run again by somebody else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gpusched as gs
import pytest
from gpusched import cli


@pytest.fixture
def cluster_path(tmp_path: Path) -> str:
    path = tmp_path / "cluster.json"
    gs.sim.generate_cluster(preset="asi", nodes=60, seed=3, layout="spread").to_json(path)
    return str(path)


def waiting() -> gs.Cluster:
    """A full node, and two pods that wait."""
    task = {"cpu_milli": 1000, "memory_mib": 1, "gpu_count": 2}
    runs = [{**task, "name": f"runs-{i}", "node": "n", "gpus": [2 * i, 2 * i + 1], "preemptible": True} for i in range(4)]
    waits = [{**task, "name": f"waits-{i}", "job": "gang", "priority": 10} for i in range(2)]
    node = {"name": "n", "gpu_model": "G", "gpu_count": 8, "cpu_milli": 64_000, "memory_mib": 1024}
    return gs.Cluster.from_json({"format": "gpusched.cluster", "version": 1, "nodes": [node], "tasks": runs + waits})


def test_a_plan_is_made_again(cluster_path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = tmp_path / "bundle.json"
    arguments = ["--preset", "fast", "--seed", "5", "--max-moves", "9", "--save-bundle", str(bundle)]
    assert cli.main(["consolidate", cluster_path, *arguments]) == 0
    assert f"wrote {bundle}" in capsys.readouterr().out
    document = json.loads(bundle.read_text())
    assert document["options"] == {"preset": "fast", "seed": 5, "max_moves": 9}
    assert document["gpusched"] == gs.__version__
    assert 0 < len(document["plan"]["moves"]) <= 9
    assert cli.main(["replay-bundle", str(bundle)]) == 0
    assert capsys.readouterr().out == f"consolidate: the same plan as gpusched {gs.__version__} made\n"


def test_another_plan_is_told(cluster_path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = tmp_path / "bundle.json"
    assert cli.main(["consolidate", cluster_path, "--save-bundle", str(bundle)]) == 0
    document = json.loads(bundle.read_text())
    moves = len(document["plan"]["moves"])
    document["plan"]["moves"][0]["wave"] = 1
    document["plan"]["stats"]["moves"] = 77
    bundle.write_text(json.dumps(document))
    capsys.readouterr()
    assert cli.main(["replay-bundle", str(bundle)]) == 1
    out = capsys.readouterr().out
    assert "another plan than" in out
    assert f"moves: 1 of {moves} -> {moves} are others: #0 " in out
    assert f"stats.moves: 77 -> {moves}" in out
    replayed = gs.bundles.replay(bundle)
    assert not replayed.same and len(replayed.differences) == 2
    assert replayed.found is not None and len(replayed.found.moves) == moves


def test_no_name_is_left(cluster_path: str, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.json"
    path = Path(cluster_path)
    path.write_text(path.read_text().replace('"node-', '"our-node-').replace('"job-', '"our-job-'))
    cluster = gs.Cluster.from_json(cluster_path)
    clear = [str(name) for name in cluster.nodes.name[:20]]
    arguments = ["--clear", ",".join(clear), "--save-bundle", str(bundle), "--anonymize-bundle"]
    assert cli.main(["consolidate", cluster_path, *arguments]) == 0
    text = bundle.read_text()
    assert "our-" not in text
    document = json.loads(text)
    assert len(document["options"]["clear"]) == 20
    listed = [node["name"] for node in document["cluster"]["nodes"]]
    assert document["options"]["clear"] == listed[:20]
    assert gs.bundles.replay(bundle).same


@pytest.mark.parametrize("anonymize", [False, True])
@pytest.mark.parametrize("pods", [["waits-1"], ["waits-0", "waits-1"], "gang"])
def test_preemption(tmp_path: Path, pods: Any, anonymize: bool) -> None:
    cluster = waiting()
    cluster_path, bundle = tmp_path / "cluster.json", tmp_path / "bundle.json"
    cluster.to_json(cluster_path)
    who = ["--job", pods] if isinstance(pods, str) else pods
    extra = ["--anonymize-bundle"] if anonymize else []
    assert cli.main(["preempt", str(cluster_path), *who, "--save-bundle", str(bundle), *extra]) == 0
    replayed = gs.bundles.replay(bundle)
    assert replayed.same and replayed.command == "preempt"
    assert replayed.found is not None
    assert len(replayed.found.evictions) == (1 if pods == ["waits-1"] else 2)
    assert ("waits" not in bundle.read_text()) == anonymize


def test_that_nothing_helps_is_a_result(tmp_path: Path) -> None:
    document = waiting().to_json()
    for task in document["tasks"]:
        task["preemptible"] = False
    cluster_path, bundle = tmp_path / "cluster.json", tmp_path / "bundle.json"
    cluster_path.write_text(json.dumps(document))
    assert cli.main(["preempt", str(cluster_path), "waits-0", "--save-bundle", str(bundle)]) == 1
    assert json.loads(bundle.read_text())["plan"] is None
    assert gs.bundles.replay(bundle).same
    saved = json.loads(bundle.read_text())
    for task in saved["cluster"]["tasks"]:
        task["preemptible"] = task.get("node") is not None
    bundle.write_text(json.dumps(saved))
    assert gs.bundles.replay(bundle).differences == ["there was no plan, and is one now"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"format": "gpusched.plan"}, "format: 'gpusched.plan'; expected 'gpusched.bundle'"),
        ({"version": 2}, "version: 2; expected 1"),
        ({"command": "consolidat"}, "did you mean 'consolidate'"),
        ({"options": {"sed": 1}}, "sed"),
        ({"options": []}, "options: expected a mapping"),
        ({"other": 1}, "unknown field 'other'"),
        ({"cluster": {"format": "gpusched.cluster"}}, "version"),
    ],
)
def test_what_is_no_bundle_is_refused(tmp_path: Path, change: dict[str, Any], problem: str) -> None:
    bundle = tmp_path / "bundle.json"
    gs.bundles.save(bundle, "consolidate", waiting(), {"seed": 1}, gs.consolidate(waiting(), seed=1))
    document = json.loads(bundle.read_text())
    bundle.write_text(json.dumps({**document, **change}))
    with pytest.raises(gs.InvalidInput, match=problem):
        gs.bundles.replay(bundle)


def test_a_field_that_is_missing_is_named(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.json"
    bundle.write_text('{"format": "gpusched.bundle", "version": 1, "command": "consolidate"}')
    with pytest.raises(gs.InvalidInput) as error:
        gs.bundles.replay(bundle)
    assert [problem.rsplit(": ", 1)[-1] for problem in error.value.problems] == [
        f"field {name!r} is missing" for name in ("gpusched", "options", "cluster", "plan")
    ]


def test_options_that_no_file_can_hold_are_refused(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.json"
    options = {"policies": {"node_order": lambda *_: 0}}
    with pytest.raises(gs.InvalidInput, match="/options/policies/node_order"):
        gs.bundles.save(bundle, "consolidate", waiting(), options, None)
    assert not bundle.exists()
    with pytest.raises(gs.BackendError, match="cannot be written"):
        gs.bundles.save(tmp_path / "no" / "bundle.json", "consolidate", waiting(), {}, None)
