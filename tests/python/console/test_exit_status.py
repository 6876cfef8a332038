# SPDX-License-Identifier: Apache-2.0
"""The exit status of every command: done, not reached or in part, bad input."""

from __future__ import annotations

import json
from pathlib import Path

import gpusched as gs
import pytest
from clusters import document, make_node, make_task
from gpusched import cli
from messages import mentions


def snapshot() -> dict[str, object]:
    """Two nodes of 8 GPUs with 2 and 4 in use, and pending tasks.

    small fits, big fits after a move, huge does not fit.
    """
    tasks = [
        make_task("a", node="n0", gpus=[0, 1], gpu_count=2),
        make_task("b", node="n1", gpus=[0, 1, 2, 3], gpu_count=4, locked=True, job="ran"),
        make_task("big", gpu_count=8),
        make_task("small", gpu_count=2),
    ]
    tasks += [make_task(f"huge-{i}", gpu_count=1, job="huge") for i in range(16)]
    return document([make_node("n0"), make_node("n1")], tasks)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("files")
    cluster = gs.Cluster.from_json(snapshot())
    plan = gs.consolidate(cluster)
    assert plan.vacated_nodes == ["n0"]
    spoiled = plan.to_json() | {"vacated_nodes": ["n1"]}
    names = {name: str(folder / f"{name}.json") for name in ("c", "after", "p", "spoiled", "broken")}
    cluster.to_json(names["c"])
    gs.apply(cluster, plan).to_json(names["after"])
    plan.to_json(names["p"])
    Path(names["spoiled"]).write_text(json.dumps(spoiled))
    Path(names["broken"]).write_text("{")
    return names | {"out": str(folder / "out.json"), "page": str(folder / "page.html")}


@pytest.mark.parametrize(
    ("status", "command"),
    [
        # 0: done as asked, also if there is nothing to do
        (0, "generate asi --nodes 20 -o {out}"),
        (0, "report {c}"),
        (0, "consolidate {c}"),
        (0, "consolidate {after}"),  # no move
        (0, "consolidate {c} --goal empty_nodes=1,gpu_model=a100"),
        (0, "consolidate {c} --last {p}"),
        (0, "consolidate {c} --last {p} --goal empty_nodes=1"),
        (0, "frontier {c} --points 2"),
        (0, "allocate {c} small"),
        (0, "admit {c} big"),
        (0, "preempt {c} small"),
        (0, "verify {c} {p}"),
        (0, "explain {c} {p} n1"),
        (0, "explain-move {c} a n1"),
        (0, "export {p}"),
        (0, "export {p} --to kubernetes"),
        (0, "diff {c} {c}"),
        (0, "diff {p} {p}"),
        (0, "plan-page {p} {c} -o {page}"),
        (0, "anonymize {c} {out}"),
        (0, "topology show {c}"),
        # 1: not reached, also in part
        (1, "consolidate {c} --goal empty_nodes=2"),
        (1, "consolidate {c} --last {p} --goal empty_nodes=2"),
        (1, "allocate {c} big"),
        (1, "allocate {c} small huge"),  # in part
        (1, "admit {c} huge"),
        (1, "preempt {c} big"),
        (1, "verify {c} {spoiled}"),
        (1, "diff {c} {after}"),
        (1, "diff {p} {spoiled}"),
        # 4: the pods run, and so do not wait for room
        (4, "why {c} a"),
        (4, "allocate {c} a"),
        (4, "allocate {c} a b"),
        (4, "allocate {c} a small"),
        (1, "allocate {c} a huge"),
        (4, "admit {c} a"),
        (4, "preempt {c} a"),
        (4, "preempt {c} --job ran"),
        (4, "preempt {c} ran"),
        (4, "preempt {c} a small"),
        (4, "preempt {c} small ran"),
        (1, "preempt {c} huge"),
        (4, "allocate {c} ran"),
        # 2: bad input
        (2, "why {c} nobody"),
        (2, "report {broken}"),
        (2, "report nowhere.json"),
        (2, "consolidate {c} --goal empty_nodes=1,gpu_model=H100"),
        (2, "consolidate {c} --max-moves -1"),
        (2, "consolidate {c} --last {c}"),
        (2, "consolidate {c} --no-such-option"),
        (2, "frontier {c} --points 0"),
        (2, "allocate {c} nobody"),
        (2, "admit {c} nobody"),
        (2, "preempt {c} nobody"),
        (2, "verify {c} {c}"),
        (2, "explain {c} {p} n9"),
        (2, "explain-move {c} a n9"),
        (2, "export {c}"),
        (2, "export {p} --to koordinator"),
        (2, "diff {c} {p}"),
        (2, "diff {c} nowhere.json"),
        (2, "plan-page {p} {after}"),
        (2, "plan-page {p} {c} -o {p}"),
        (2, "anonymize {broken} {out}"),
        (2, "no-such-command"),
    ],
)
def test_exit_status(
    status: int, command: str, files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    words = [word.format(**files) for word in command.split()]
    try:
        code = cli.main(words)
    except SystemExit as ended:  # usage errors
        code = ended.code
    said = capsys.readouterr()
    assert code == status, said.err
    assert said.err or status != 2


KAI = Path(__file__).parents[2] / "golden" / "io" / "kai" / "snapshot.json"


@pytest.fixture(scope="module")
def kai(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A cluster of KAI-Scheduler, with a pod behind a gate and a gang that lacks a pod."""
    content = json.loads(KAI.read_text())
    for pod in content["rawObjects"]["pods"]:
        if pod["metadata"]["name"] == "half":
            pod["spec"]["schedulingGates"] = [{"name": "approval"}]
    for group in content["rawObjects"]["podGroups"]:
        if group["metadata"]["name"] == "wide":
            group["spec"]["minMember"] = 3
    path = str(tmp_path_factory.mktemp("kai") / "c.json")
    gs.io.read_kai_snapshot(content).cluster.to_json(path)
    return path


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("ml/serve-0", 4),  # runs
        ("ml/train", 4),
        ("ml/train-0", 4),
        ("kube-system/exporter-0", 4),
        ("ml/half", 4),  # does not wait for room
        ("ml/wide", 4),
        ("ml/wide-1", 4),
        ("ml/nobody", 2),
    ],
)
@pytest.mark.parametrize(
    "command", ["why {}", "allocate {}", "admit {}", "preempt {}", "preempt --job {}", "preempt ml/wide-0 {}"]
)
def test_exit_status_with_kai(
    name: str, status: int, command: str, kai: str, capsys: pytest.CaptureFixture[str]
) -> None:
    first, *others = command.format(name).split()
    if "ml/wide-0" in others:  # a list of pods
        status = {"ml/wide": 2, "ml/half": 2}.get(name, status)
    assert cli.main([first, kai, *others]) == status
    said = capsys.readouterr()
    if status == 4:
        assert mentions(said.out, "does not wait for room")
    else:
        assert "ml/" in said.err


@pytest.mark.parametrize(
    ("name", "status", "says"),
    [("ml/serve-0", 0, "could move"), ("ml/half", 0, "does not run"), ("ml/nobody", 2, "unknown task")],
)
def test_explain_move_with_kai(
    name: str, status: int, says: str, kai: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["explain-move", kai, name, "gpu-1"]) == status
    said = capsys.readouterr()
    assert says in said.out + said.err


def test_a_pod_that_runs_has_no_place_to_find(
    files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["why"], ["allocate"], ["admit"], ["preempt"]):
        assert cli.main([*command, files["c"], "a"]) == 4
        assert mentions(capsys.readouterr().out, "does not wait for room: it runs on n0"), command
