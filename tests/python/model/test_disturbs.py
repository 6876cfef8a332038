# SPDX-License-Identifier: Apache-2.0
"""What a plan disturbs, in Python: counts, sentence, tables."""

from __future__ import annotations

import pickle
from pathlib import Path

import gpusched as gs
import pytest
from clusters import document, make_node, make_task
from kubernetes_objects import a_list, node, pod

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def imported() -> gs.Cluster:
    """Two nodes; a node with a pod of a Job and one of a StatefulSet can be emptied."""
    pods = [
        pod("train-0", 2, "a", "Job"),
        pod("web-1", 1, "a", "StatefulSet"),
        pod("bare", 4, "b"),
        pod("other", 1, "b", "Job"),
    ]
    return gs.io.read_kubernetes(a_list(node("a"), node("b"), *pods)).cluster


def test_owners_are_those_of_the_objects(imported: gs.Cluster) -> None:
    plan = gs.consolidate(imported)
    d = plan.disturbs
    assert (d.pods, d.owners, d.gpus, d.restarted, d.copied, d.evicted) == (2, 2, 3, 2, 0, 0)
    assert d.by_owner_kind == {"Job": 1, "StatefulSet": 1} and d.by_namespace == {"ml": 2}
    assert str(d) == "disturbs 2 pods (1 of Jobs, 1 of StatefulSets) of 2 owners, 3 GPUs: 2 restarted."
    assert pickle.loads(pickle.dumps(plan)).disturbs == d
    assert pickle.loads(pickle.dumps(d)) == d


def test_rows_have_owner_kind_namespace_gpus_and_how(imported: gs.Cluster) -> None:
    plan = gs.consolidate(imported)
    frame = plan.to_pandas()
    rows = {row.task: (row.how, row.namespace, row.owner_kind, row.task_gpus) for row in frame.itertuples()}
    assert rows == {
        "ml/train-0": ("restart", "ml", "Job", 2),
        "ml/web-1": ("restart", "ml", "StatefulSet", 1),
    }
    csv = gs.io.plan_to_csv(plan).splitlines()
    assert csv[0].endswith(",how,chain,for,namespace,owner_kind,task_gpus")
    assert {line.rsplit(",", 3)[1:][1] for line in csv[1:3]} == {"Job", "StatefulSet"}
    assert "owner_kind" in plan._repr_html_()


def test_a_plan_from_a_document_must_be_described(imported: gs.Cluster, tmp_path: Path) -> None:
    plan = gs.consolidate(imported)
    read = gs.Plan.from_json(plan.to_json())
    assert read == plan and read.disturbs.owners is None and read.disturbs.gpus is None
    assert str(read.disturbs) == "disturbs 2 pods: 2 restarted."
    assert read.to_pandas().task_gpus.isna().all()
    assert read.described(imported).disturbs == plan.disturbs
    assert read.disturbs.owners is None  # unchanged


def test_snapshots_keep_the_kinds_of_owners(imported: gs.Cluster, tmp_path: Path) -> None:
    imported.to_json(tmp_path / "c.json")
    for copy in (
        pickle.loads(pickle.dumps(imported)),
        gs.Cluster.from_json(imported.to_json()),
        gs.Cluster.from_json(tmp_path / "c.json"),
    ):
        assert copy == imported and copy.to_json() == imported.to_json()
        assert gs.consolidate(copy).disturbs == gs.consolidate(imported).disturbs


def test_evictions_restart_or_end() -> None:
    tasks = [make_task(f"t{i}", node="n0", gpus=[i], priority_class="LP", preemptible=True) for i in range(8)]
    cluster = gs.Cluster.from_json(document([make_node("n0")], tasks))
    made = gs.admit(
        cluster,
        {"name": "j", "pods": [{"count": 1, "gpu_count": 2, "cpu_milli": 1, "memory_mib": 1, "priority": 9}]},
        moves=False,
    )
    assert made.admitted, made.reason
    d = made.plan.disturbs
    assert (d.pods, d.evicted, d.gpus) == (2, 2, 2)
    assert str(d) == "disturbs 2 pods (2 without an owner), 2 GPUs: 2 evicted."
    assert set(made.plan.to_pandas().query("step == 'evict'").how) == {"evict"}
