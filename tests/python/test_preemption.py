"""gpusched.preemption and `gpusched preempt`."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import gpusched as gs
import pytest
from clusters import document
from gpusched import cli


def machine(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "gpu_model": "RTX4090",
        "gpu_count": 8,
        "cpu_milli": 64000,
        "memory_mib": 1000,
        "hardware": "rtx4090x8",
    }


def task(name: str, gpus: list[int] | int, priority: int, node: str | None = None) -> dict[str, Any]:
    count = gpus if isinstance(gpus, int) else len(gpus)
    found: dict[str, Any] = {"name": name, "gpu_count": count, "cpu_milli": 8000 * count, "memory_mib": 1}
    found |= {"priority": priority, "priority_class": "LP" if priority < 1000 else "HP"}
    return found if node is None else found | {"node": node, "gpus": gpus}


@pytest.fixture
def cluster() -> gs.Cluster:
    """The example of FlexTopo's section 2: twelve options for two GPUs, four of them across sockets."""
    tasks = [task(f"c1{g}", [g], 100, "m1") for g in (4, 5, 6, 7)]
    tasks += [task(f"c2{g}", [g], 100, "m2") for g in (2, 3, 6, 7)]
    for node, blocks in (("m1", ([0, 1], [2, 3])), ("m2", ([0, 1], [4, 5]))):
        tasks += [task(f"{node}-{b[0]}", b, 1000, node) for b in blocks]
    tasks.append(task("waits", 4, 1000) | {"hardware_affinity": {"level": "socket", "qos": "guaranteed"}})
    return gs.Cluster.from_json(document([machine("m1"), machine("m2")], tasks, now=50))


def test_the_example_of_the_paper(cluster: gs.Cluster) -> None:
    b = task("b", 2, 1000)
    options = [s for n in ("m1", "m2") for s in gs.preemption.minimal_victim_sets(cluster, b, n, qos="none")]
    aligned = [
        s for n in ("m1", "m2") for s in gs.preemption.minimal_victim_sets(cluster, b, n, qos="guaranteed")
    ]
    assert len(options) == 12 and len(aligned) == 8
    assert all(s in options for s in aligned)

    d = gs.preempt(cluster, "waits")
    assert d is not None
    assert (d.node, d.victims, d.gpus, d.topology) == ("m1", ["c14", "c15", "c16", "c17"], [4, 5, 6, 7], "socket")
    assert d.score == 0.5 / 400 + 0.5 * 0.5
    assert d.cost == 4 * 50 and d.priority_sum == 400 and d.proven
    plan = gs.preemption.to_plan(d)
    assert plan.evictions == d.victims and plan.placements[0].gpus == d.gpus
    assert gs.verify.plan(cluster, plan).ok


@pytest.mark.parametrize("policy", ["spot", "spot_exact", "imp", "exhaustive", "reprieve", "first_fit"])
def test_all_policies_agree_where_there_is_one_way(cluster: gs.Cluster, policy: Any) -> None:
    d = gs.preempt(cluster, "waits", policy=policy)
    assert d is not None and d.victims == ["c14", "c15", "c16", "c17"]
    assert (d.score is None) == policy.startswith("spot")


def test_what_fits_and_what_does_not(cluster: gs.Cluster) -> None:
    assert gs.preempt(cluster, task("x", 5, 1000)) is None
    why = gs.preemption.explain(cluster, task("x", 5, 1000) | {"cpu_milli": 1})
    assert (why.node, why.obstacle, why.missing) == ("m1", "gpu", 1)
    assert str(why).startswith("node 'm1' comes closest:")
    assert gs.preemption.minimal_victim_sets(cluster, task("x", 5, 1000), "m1") == []
    nothing = {"name": "y", "cpu_milli": 0, "memory_mib": 1, "gpu_count": 0}
    fits = gs.preempt(cluster, nothing)
    assert fits is not None and fits.victims == [] and fits.score is None
    assert gs.preemption.minimal_victim_sets(cluster, nothing, "m1") == [[]]
    # Spot tasks evict nobody, whatever their priority.
    assert gs.preempt(cluster, task("z", 1, 999), policy="spot") is None
    with pytest.raises(gs.InvalidInput, match=r"alpha: 2; expected 0 to 1"):
        gs.preempt(cluster, "waits", alpha=2)
    with pytest.raises(gs.InvalidInput, match="one of 'guaranteed', 'best_effort', 'none'"):
        gs.preempt(cluster, "waits", qos="perhaps")  # type: ignore[arg-type]
    with pytest.raises(gs.InvalidInput, match="runs on node 'm1'"):
        gs.preempt(cluster, "c14")


def test_search_limits_are_told(cluster: gs.Cluster) -> None:
    with pytest.warns(RuntimeWarning, match="search_limit was hit"):
        gs.preemption.minimal_victim_sets(cluster, task("b", 2, 1000), "m1", search_limit=1)


def test_decisions_are_data(cluster: gs.Cluster) -> None:
    d = gs.preempt(cluster, "waits")
    assert d is not None
    for twin in (copy.deepcopy(d), copy.copy(d), pickle.loads(pickle.dumps(d))):
        assert twin == d
    assert "node='m1'" in repr(d)


def test_the_index_follows_events(cluster: gs.Cluster) -> None:
    index = gs.preemption.PreemptionIndex(cluster)
    assert index.decide("waits") == gs.preempt(cluster, "waits")
    index.fail_gpu("m1", 4)
    assert index.decide("waits") is None
    index.fail_gpu("m1", 4, False)
    index.remove("m1-0")
    index.remove("m1-2")
    fits = index.decide("waits")
    assert fits is not None and fits.victims == [] and fits.gpus == [0, 1, 2, 3]
    index.place("m1-0", "m1", [0, 1])
    d = index.decide("waits")
    assert d is not None and d.victims
    index.apply(d)
    with pytest.raises(gs.InvalidInput, match="runs on node 'm1'"):
        index.decide("waits")
    index.fail_node("m1")
    index.set_now(100)
    assert index.decide("waits") is None
    with pytest.raises(gs.InvalidInput, match="expected distinct GPUs of node 'm2'"):
        index.place("m1-0", "m2", [8, 9])


def test_harvest() -> None:
    a = gs.preemption.simulate_harvest(owners=100, days=3)
    assert 0.7 < a.harvested < 1 and a.eviction_max_s <= 60 and len(a.standby_by_hour) == 24
    assert a == gs.preemption.simulate_harvest(owners=100, days=3)
    with pytest.raises(gs.InvalidInput, match="owners: 0"):
        gs.preemption.simulate_harvest(owners=0)


def test_the_command(cluster: gs.Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    snapshot, plan = str(tmp_path / "c.json"), str(tmp_path / "p.json")
    cluster.to_json(snapshot)
    assert cli.main(["preempt", snapshot, "waits", "--policy", "exhaustive", "-o", plan]) == 0
    out = capsys.readouterr().out
    assert "waits goes to m1: GPUs 4, 5, 6, 7 (one socket)" in out and "evict c14" in out
    assert json.loads(Path(plan).read_text())["evictions"] == ["c14", "c15", "c16", "c17"]
    assert cli.main(["verify", snapshot, plan]) == 0
    assert cli.main(["preempt", snapshot, "waits", "--qos", "none", "--policy", "spot"]) == 0
    impossible = json.loads(Path(snapshot).read_text())
    impossible["tasks"][-1]["gpu_count"] = 8
    Path(snapshot).write_text(json.dumps(impossible))
    capsys.readouterr()
    assert cli.main(["preempt", snapshot, "waits"]) == 1
    assert "nobody is evicted: node 'm1' comes closest" in capsys.readouterr().out
