# SPDX-License-Identifier: Apache-2.0
"""gs.why and `gpusched why`; what the other commands say of jobs that do not wait for room."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import gpusched as gs
import pytest
from clusters import document as snapshot
from gpusched import cli
from messages import mentions, refuses

ONLY_GPUS = {"cpu_milli": 0, "memory_mib": 0}


def node(name: str, gpus: int = 8, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "gpu_model": "H100",
        "gpu_count": gpus,
        "cpu_milli": 64000,
        "memory_mib": 65536,
        **more,
    }


def task(name: str, count: int, **more: Any) -> dict[str, Any]:
    return {"name": name, "gpu_count": count, **ONLY_GPUS, **more}


def fragmented() -> dict[str, Any]:
    """Three nodes with 4 of 8 idle GPUs; `asks` needs 8, `gated` waits for a gate, `gang` lacks a member."""
    tasks = [task(f"half{n}", 4, node=f"n{n}", gpus=[0, 1, 2, 3]) for n in range(3)]
    tasks += [task("asks", 8), task("gated", 1, **{"x-waiting": {"waits_for": "gate", "detail": "approval"}})]
    tasks += [task("member", 1, job="gang")]
    return snapshot(
        [node(f"n{n}") for n in range(3)], tasks, now=0, jobs=[{"name": "gang", "min_members": 2}]
    )


def test_the_answer_names_cause_table_and_remedies() -> None:
    found = gs.why(gs.Cluster.from_json(fragmented()), "asks")
    assert found.waiting_for is None and not found.fits and found.impossible is False
    assert found.binding == found.cause_kind == "fragmentation" and found.constraints == ["gpu"]
    assert mentions(
        found.cause, "fragmentation: 3 H100 nodes 12 idle GPUs; none of them has more than 4 idle; needs 8"
    )
    (row,) = found.table
    assert (row.constraint, row.nodes_first, row.nodes_alone, row.best_node) == ("gpu", 3, 3, "n0")
    assert [(r.kind, r.cost) for r in found.remedies] == [("moves", 120.0), ("add_nodes", None)]
    assert found.pods == ["asks"] and found.places == 0 and found.kinds[0].nodes_fit == 0
    text = str(found)
    assert text.startswith(found.cause) and all(remedy.text in text for remedy in found.remedies)
    assert "fragmentation" in found._repr_html_() and "<table>" in found._repr_html_()
    frame = found.to_pandas()
    assert list(frame.columns) == ["pod", "constraint", "nodes_first", "nodes_alone", "best_node"]
    assert frame.nodes_first.tolist() == [3]
    assert pickle.loads(pickle.dumps(found)) == copy.copy(found) == found and len(repr(found.table[0])) < 200


def test_several_constraints_are_a_tuple_and_a_fit_is_none() -> None:
    document = fragmented()
    document["tasks"][3]["cpu_milli"] = 1000
    for running in document["tasks"][:3]:
        running["cpu_milli"] = 64000
    assert gs.why(gs.Cluster.from_json(document), "asks").binding == ("gpu", "cpu")
    document["tasks"][3] |= {"gpu_count": 4, "cpu_milli": 0}
    found = gs.why(gs.Cluster.from_json(document), "asks")
    assert found.fits and found.binding is None and found.remedies == []


@pytest.mark.parametrize(
    ("name", "waits_for", "text"),
    [
        ("gated", "gate", "approval"),
        ("gang", "gang_incomplete", "needs 2 members"),
        ("member", "gang_incomplete", ""),
        ("claims", "volume_claim", "a resource claim is not ready: resource claim d/c does not exist"),
        ("mounts", "volume_claim", "a volume claim is not ready: d/v does not exist"),
    ],
)
def test_jobs_that_do_not_wait_for_room(
    name: str, waits_for: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = fragmented()
    for pod, missing in (("claims", "resource claim d/c"), ("mounts", "d/v")):
        waiting = {"waits_for": "volume_claim", "detail": f"{missing} does not exist"}
        document["tasks"].append(task(pod, 1, **{"x-waiting": waiting}))
    cluster = gs.Cluster.from_json(document)
    found = gs.why(cluster, name)
    assert found.waiting_for == waits_for and found.binding == "waiting" and text in found.cause
    placed = gs.allocate(cluster, name)
    assert not placed.placed and placed.obstacle == "waiting" and text in placed.reason
    admitted = gs.admit(cluster, name)
    assert not admitted.admitted and admitted.obstacle == "waiting" and admitted.reason == placed.reason
    path = str(tmp_path / "cluster.json")
    cluster.to_json(path)
    for command in ("why", "allocate", "admit", "preempt"):
        of_job = ["--job"] if command == "preempt" and name == "gang" else []
        assert cli.main([command, path, *of_job, name]) == 4
        said = capsys.readouterr().out
        assert "does not wait for room" in said and text in said


def test_the_reason_is_kept_by_documents() -> None:
    document = gs.Cluster.from_json(fragmented()).to_json()
    assert document["tasks"][4]["x-waiting"] == {"waits_for": "gate", "detail": "approval"}
    assert gs.Cluster.from_json(document).to_json() == document
    assert "x-waiting" not in document["tasks"][3]


def test_an_imported_pod_says_what_it_waits_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ready = [{"type": "Ready", "status": "True"}]
    has = {"cpu": "8", "memory": "8Gi", "pods": "10"}
    objects = [
        {"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": has, "conditions": ready}},
        {
            "kind": "Pod",
            "metadata": {"name": "gated", "namespace": "d"},
            "spec": {"containers": [], "schedulingGates": [{"name": "example.com/approval"}]},
            "status": {"phase": "Pending"},
        },
    ]
    dump, out = tmp_path / "dump.json", tmp_path / "cluster.json"
    items = [{"apiVersion": "v1", **item} for item in objects]
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    assert cli.main(["import", "kubernetes", str(dump), "-o", str(out)]) == 0
    capsys.readouterr()
    assert cli.main(["why", str(out), "d/gated"]) == 4
    assert "example.com/approval" in capsys.readouterr().out


@pytest.mark.parametrize(("options", "planned"), [([], True), (["--on", "n0"], False)])
def test_the_console_names_the_command_that_plans_the_moves(
    options: list[str], planned: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "cluster.json")
    gs.Cluster.from_json(fragmented()).to_json(path)
    assert cli.main(["why", path, "asks", *options]) == 0
    out = capsys.readouterr().out
    assert "move 1 task" in out and (f"gpusched admit {path} asks" in out) == planned
    if planned:
        assert cli.main(["admit", path, "asks"]) == 0


def test_text_leaves_out_rows_that_explain_nothing() -> None:
    document = fragmented()
    for one in document["nodes"]:
        one["labels"] = {"pool": "a"}
    document["nodes"][0] |= {"labels": {"pool": "b"}, "schedulable": False}
    document["tasks"][3]["node_selector"] = {"pool": "a"}
    found = gs.why(gs.Cluster.from_json(document), "asks")
    assert [row.constraint for row in found.table] == ["node_selector", "cordoned", "gpu"]
    shown = [row.constraint for row in found.table if row.nodes_first or row.nodes_alone]
    assert shown == ["node_selector", "gpu"]
    for text in (str(found), found._repr_html_()):
        assert "cordoned" not in text and all(name in text for name in shown)


def test_one_node_and_the_order_of_filters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = fragmented()
    document["nodes"][1] |= {
        "schedulable": False,
        "taints": [{"key": "team", "value": "a", "effect": "NoSchedule"}],
    }
    cluster = gs.Cluster.from_json(document)
    rows = [row.constraint for row in gs.why(cluster, "asks", on="n1").table]
    assert rows == ["taint", "cordoned", "gpu"]
    assert [row.constraint for row in gs.why(cluster, "asks", on="n1", order="kube").table] == [
        "cordoned",
        "taint",
        "gpu",
    ]
    path = str(tmp_path / "cluster.json")
    cluster.to_json(path)
    assert cli.main(["why", path, "asks", "--on", "n0"]) == 0
    assert "half0" in capsys.readouterr().out
    assert cli.main(["why", path, "asks", "--on", "n9"]) == 2
    assert mentions(capsys.readouterr().err, "--on: 'n9'")


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("nothing", {}, "name: 'nothing'; expected a job or a task of the cluster"),
        ("asks", {"order": "other"}, "order: 'other'; permanence kube"),
        ("asks", {"on": "n9"}, "on: 'n9'"),
        ("asks", {"time_limit": -1}, "time_limit: -1; at least 0"),
    ],
)
def test_bad_names_and_options_are_refused(name: str, options: dict[str, Any], words: str) -> None:
    with refuses(words):
        gs.why(gs.Cluster.from_json(fragmented()), name, **options)


@pytest.mark.parametrize(
    ("asks", "runs", "says"),
    [
        ({"avoid": ["host port TCP/8080"]}, {"groups": ["host port TCP/8080"]},
         "host port TCP/8080 taken node 'n0' by 'runs'"),
        ({"avoid": ["claim d/x"]}, {"groups": ["claim d/x"]},
         "volume claim d/x in use by 'runs' on node 'n0'"),
        ({"avoid": ["d/app=db"]}, {"groups": ["d/app=db"]},
         "anti-affinity pods 'app=db' namespace d; node 'n0' holds 1: 'runs'"),
        ({"groups": ["d/app=db"]}, {"avoid": ["d/app=db"]},
         "anti-affinity of 'runs' on node 'n0' excludes pods 'app=db'"),
        ({"near": ["d/app=db"]}, {}, "no pod 'app=db' in namespace d exists"),
        ({"device_count": 2, "device_classes": ["nvidia.com/mig-1g.10gb"]}, {},
         "2 of 'nvidia.com/mig-1g.10gb' 1 free of 1"),
    ],
)  # fmt: skip
def test_refusals_are_in_kubernetes_words(asks: dict[str, Any], runs: dict[str, Any], says: str) -> None:
    def fields(given: dict[str, Any]) -> dict[str, Any]:
        return {
            name: [{"group": group} for group in value] if name in ("avoid", "near") else value
            for name, value in given.items()
        }

    devices = [{"device_class": "nvidia.com/mig-1g.10gb", "count": 1}]
    labels = {"kubernetes.io/hostname": "n0"}
    tasks = [task("runs", 1, node="n0", gpus=[0], **fields(runs)), task("asks", 0, **fields(asks))]
    cluster = gs.Cluster.from_json(
        snapshot([node("n0", 1, labels=labels, devices=devices)], tasks, version=2)
    )
    for text in (gs.allocate(cluster, "asks").reason, gs.preemption.explain(cluster, "asks").text):
        assert mentions(text, says) or "device_count" in asks, text
        assert "avoid" not in text and "near:" not in text
    assert mentions(gs.allocate(cluster, "asks").reason, says)
