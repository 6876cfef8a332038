# SPDX-License-Identifier: Apache-2.0
"""Properties of random snapshots."""

from __future__ import annotations

from typing import Any

import gpusched as gs
import pytest

hypothesis = pytest.importorskip("hypothesis")
from clusters import document  # noqa: E402
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=6)
LABELS = st.dictionaries(NAMES, NAMES, max_size=2)


@st.composite
def clusters(draw: st.DrawFn) -> dict[str, Any]:
    """Nodes and tasks with any names and any legal fields; tasks run where their GPUs are idle."""
    nodes, free = [], {}
    for name in draw(st.lists(NAMES, min_size=1, max_size=5, unique=True)):
        gpus = draw(st.integers(0, 16))
        nodes.append(
            {
                "name": name,
                "gpu_model": draw(st.sampled_from(["A", "B", ""])) if gpus else "",
                "gpu_count": gpus,
                "cpu_milli": draw(st.integers(100000, 10**12)),
                "memory_mib": draw(st.integers(100000, 10**12)),
                "network": draw(st.sampled_from([[], ["c"], ["c", "s"], ["c", "t"]])),
                "labels": draw(LABELS),
                "schedulable": draw(st.booleans()),
            }
        )
        free[name] = list(range(gpus))
    tasks = []
    for name in draw(st.lists(NAMES, max_size=8, unique=True)):
        node = draw(st.sampled_from([None, *free]))
        count = draw(st.integers(0, 4 if node is None else min(4, len(free[node]))))
        held = [] if node is None else [free[node].pop() for _ in range(count)]
        tasks.append(
            {
                "name": name,
                "job": draw(st.sampled_from(["", "j", "k"])),
                "cpu_milli": draw(st.integers(0, 10000)),
                "memory_mib": draw(st.integers(0, 10000)),
                "gpu_count": count,
                "gpu_share_milli": draw(st.integers(1, 1000)) if count == 1 else 1000,
                "priority": draw(st.integers(-(2**31), 2**31)),
                "priority_class": draw(st.sampled_from(["HP", "LP", "other"])),
                "locked": node is not None and draw(st.booleans()),
                "node": node,
                "gpus": sorted(held),
                "start_time": draw(st.integers(0, 10**10)),
                "move_cost": draw(st.integers(0, 10**6)),
                "anti_affinity": draw(st.sampled_from([[], [{"group": "g", "level": "node", "limit": 9}]])),
            }
        )
    return document(nodes, tasks, now=draw(st.integers(0, 10**10)))


@settings(max_examples=30, deadline=None)
@given(clusters())
def test_documents_survive_the_round_trip(text: dict[str, Any]) -> None:
    cluster = gs.Cluster.from_json(text)
    again = gs.Cluster.from_json(cluster.to_json())
    assert again == cluster and again.to_json() == cluster.to_json()
    for kind in ("nodes", "tasks"):
        for given_item, kept in zip(text[kind], cluster.to_json()[kind]):
            for key, value in given_item.items():
                if value not in ("", [], {}, None):
                    assert kept[key] == value, key


@settings(max_examples=25, deadline=None)
@given(clusters(), st.sampled_from(["ipc", "fast", "best"]))
def test_plans_verify_and_reach_their_state(text: dict[str, Any], preset: Any) -> None:
    cluster = gs.Cluster.from_json(text)
    plan = gs.consolidate(cluster, preset=preset)
    report = gs.verify.plan(cluster, plan)
    assert report.ok, report.violations
    after = gs.apply(cluster, plan)
    occupied = {n.name for n in cluster.nodes if n.occupants}
    assert occupied - {n.name for n in after.nodes if n.occupants} == set(plan.vacated_nodes)
    assert gs.Plan.from_json(plan.to_json()) == gs.Plan.from_json(gs.Plan.from_json(plan.to_json()).to_json())


@settings(max_examples=25, deadline=None)
@given(clusters(), st.integers(0, 2**64 - 1))
def test_anonymous_snapshots_pose_the_same_problem(text: dict[str, Any], seed: int) -> None:
    cluster = gs.Cluster.from_json(text)
    anonymous = gs.io.anonymize(cluster, seed=seed)
    assert anonymous.nodes.gpu_free_milli.tolist() == cluster.nodes.gpu_free_milli.tolist()
    assert gs.consolidate(anonymous).stats == gs.consolidate(cluster).stats
