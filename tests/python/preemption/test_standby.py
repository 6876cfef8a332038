# SPDX-License-Identifier: Apache-2.0
"""Standby: leases of idle GPUs, how evictions end, and how much capacity spot jobs harvest."""

from __future__ import annotations

import copy
import pickle

import gpusched as gs
import pytest
from messages import refuses


def test_harvest() -> None:
    a = gs.sim.simulate_harvest(owners=100, days=3)
    assert 0.7 < a.harvested < 1 and a.eviction_max_s <= 60 and len(a.standby_by_hour) == 24
    assert a == gs.sim.simulate_harvest(owners=100, days=3)
    phases: list[str] = []
    assert a == gs.sim.simulate_harvest(
        owners=100, days=3, progress=lambda phase, done, total: phases.append(phase)
    )
    at_once = gs.preemption.EvictionModel(grace_ms=0)
    b = gs.sim.simulate_harvest(owners=100, days=3, eviction=at_once)
    assert b.eviction_max_s == 0 and b.killed == b.evictions > 0
    with refuses("eviction 3 gpusched.preemption.EvictionModel None"):
        gs.sim.simulate_harvest(eviction=3)  # type: ignore[arg-type]


def test_a_lease_of_standby() -> None:
    lease = gs.preemption.StandbyLease("owner", "m1", [0, 1, 2, 3], seed=2)
    assert (lease.state, lease.owner, lease.node) == ("active", "owner", "m1")
    assert (lease.lent, lease.gpus) == ([], [0, 1, 2, 3])
    assert not lease.borrow("a", "LP", [0], 0)
    lease.lend(10)
    assert lease.state == "standby" and lease.lent == [0, 1, 2, 3]
    assert not lease.borrow("a", "HP", [0], 11) and not lease.borrow("a", "LP", [0, 4], 11)
    with refuses("task: the owner; expected another task"):
        lease.borrow("owner", "LP", [0], 11)
    assert lease.borrow("a", "LP", [0, 1], 11) and lease.borrow("b", "LP", [2], 12)
    assert [(b.task, b.gpus, b.eviction) for b in lease.borrowers] == [("a", [0, 1], None), ("b", [2], None)]
    lease.give_back("a", 20)
    lease.give_back("never seen", 20)
    assert lease.lent == [0, 1, 3]
    before = copy.deepcopy(lease)
    ready = lease.resume(30)
    assert 30 < ready <= 30 + 60_000 and lease.state == "resuming" and lease.lent == []
    assert before.state == "standby" and before.resume(30) == ready  # a copy goes its own way
    assert lease.advance(ready - 1) == []
    gone = lease.advance(ready)
    assert [b.task for b in gone] == ["b"] and gone[0].eviction is not None
    assert gone[0].eviction.reclaim_ms == ready and lease.state == "active"
    assert repr(lease) == "<gpusched.preemption.StandbyLease: owner on m1, active, 0 borrowers>"
    with refuses("state: active; expected standby"):
        lease.resume(ready)
    with pytest.raises(gs.InvalidInput, match="gpus: none"):
        gs.preemption.StandbyLease("owner", "m1", [])


def test_models_of_evictions() -> None:
    model = gs.preemption.EvictionModel()
    assert len(model.shutdown_ms) == 21 and (model.grace_ms, model.reclaim_ms) == (60_000, 0)
    drawn = [model.draw(100, seed) for seed in range(2000)]
    seconds = sorted((t.exit_ms - t.term_ms) / 1000 for t in drawn)
    assert drawn[0] == model.draw(100, 0) and all(t.term_ms == 100 for t in drawn)
    assert abs(sum(seconds) / 2000 - 13) < 1 and seconds[-1] <= 60 and 0 < sum(t.killed for t in drawn) < 100
    short = gs.preemption.EvictionModel(shutdown_ms=model.shutdown_ms, grace_ms=0, reclaim_ms=7)
    assert short.draw(5, 1) == pickle.loads(pickle.dumps(short)).draw(5, 1)
    assert (short.draw(5, 1).exit_ms, short.draw(5, 1).reclaim_ms, short.draw(5, 1).killed) == (5, 12, True)
    lease = gs.preemption.StandbyLease("o", "n", [0], model=short)
    lease.lend(0)
    assert lease.borrow("a", "LP", [0], 1) and lease.resume(2) == 9
    with refuses("grace_ms 60001 0 60000"):
        gs.preemption.EvictionModel(grace_ms=60_001)
