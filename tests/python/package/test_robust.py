# SPDX-License-Identifier: Apache-2.0
"""Calls that no caller means to make: they end in an error, never in the interpreter."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path

import gpusched as gs
import pytest
from clusters import document, make_node, make_task, tiny_document
from messages import mentions, refuses

EVERYTHING_WITH_NONE = """
import faulthandler, inspect, itertools, signal, sys
import gpusched as gs
faulthandler.enable()
signal.alarm(100)
node = {"gpu_model": "A", "gpu_count": 2, "cpu_milli": 1000, "memory_mib": 10}
task = {"cpu_milli": 1, "memory_mib": 1, "gpu_count": 1}
c = gs.Cluster.from_json({"format": "gpusched.cluster", "version": 1,
    "nodes": [{"name": "n0", **node}, {"name": "n1", **node}],
    "tasks": [{"name": "t0", "node": "n0", "gpus": [0], **task}, {"name": "t1", **task}]})
p = gs.consolidate(c)
arguments = [(None,), (None, None), (None, None, None), (c, None), (c, None, None), (None, p), (None, "t1"),
             (None, p, "n0"), (c, p, None), (c, "t1", None), (c, "t1", "n0", None), (p, None)]
public = [value for name, value in sorted(vars(gs).items()) if name[0] != "_"]
modules = [gs, *filter(inspect.ismodule, public)]
modules = [m for m in modules if m.__name__.startswith("gpusched")]
seen, calls = set(), 0
for module in modules:
    for name in module.__all__:
        things = [getattr(module, name)]
        if inspect.isclass(things[0]):
            things += [getattr(things[0], method) for method in dir(things[0]) if not method.startswith("__")]
        for thing in things:
            if not callable(thing) or id(thing) in seen:
                continue
            seen.add(id(thing))
            for given in arguments:
                called = (module.__name__, name, getattr(thing, "__name__", ""), len(given))
                print(*called, file=sys.stderr, flush=True)
                try:
                    thing(*given)
                except Exception:
                    pass
                calls += 1
print(calls)
"""


def test_none_ends_no_interpreter() -> None:
    run = subprocess.run(
        [sys.executable, "-c", EVERYTHING_WITH_NONE], capture_output=True, text=True, check=False, timeout=120
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert int(run.stdout.splitlines()[-1]) > 1000


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_protocol_of_pickle(tiny: gs.Cluster, protocol: int) -> None:
    plan = gs.consolidate(tiny)
    for thing in (
        tiny,
        plan,
        plan.moves[0],
        gs.consolidation.explain(tiny, plan, "n0"),
        gs.control.mig_layout("A100-80GB").profiles[0],
        gs.milp.consolidation(tiny),
        gs.topology.HardwareGraph.preset("a100x8"),
    ):
        again = pickle.loads(pickle.dumps(thing, protocol))
        assert type(again) is type(thing) and thing.__reduce__()[1] == (type(thing),)
        if isinstance(thing, (gs.Cluster, gs.Plan)):
            assert again == thing
    assert pickle.loads(pickle.dumps(tiny.nodes[1], protocol)).name == "n1"
    assert len(pickle.loads(pickle.dumps(tiny.tasks, protocol))) == 2
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(gs.preemption.OnlinePreemption(tiny), protocol)
    with pytest.raises(TypeError, match="pickle"):
        gs.preemption.OnlinePreemption(tiny).__reduce__()


OBJECTS_WITHOUT_STATE = """
import inspect, pickle
import gpusched as gs
def classes(module):
    for value in vars(module).values():
        if inspect.ismodule(value):
            yield from classes(value)
        elif type(value).__name__ == "pybind11_type":
            yield value
found = list(classes(gs._core))
for of in found:
    text = b"\\x80\\x02c%s\\n%s\\n)\\x81." % (of.__module__.encode(), of.__qualname__.encode())
    for empty in (of.__new__(of), pickle.loads(text)):
        for use in (repr, pickle.dumps, lambda o: [getattr(o, name) for name in dir(o) if name[0] != "_"]):
            try:
                use(empty)
            except (gs.InvalidInput, TypeError) as error:
                assert "no value" in str(error) or use is pickle.dumps, (of, error)
            else:
                assert use not in (repr, pickle.dumps), of
    try:
        gs.consolidate(empty)
    except gs.InvalidInput:
        pass
print(len(found))
"""


def test_objects_without_the_state_of_a_pickle_are_refused() -> None:
    command = [sys.executable, "-c", OBJECTS_WITHOUT_STATE]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr[-2000:]
    assert int(run.stdout) > 80


def test_states_of_pickles_are_checked(tiny: gs.Cluster) -> None:
    network = gs.topology.NetworkTree(tiny)
    timeline = gs.sim.replay_spot(gs.sim.generate_spot_trace(hours=4, nodes=20)).timeline
    columns = timeline.__getstate__()
    obstacle = gs.explain_move(tiny, tiny.tasks[0].name, tiny.nodes[1].name)
    states = [
        *((tiny.nodes[0], (tiny, at)) for at in (-1, 3, 2**31, 2**32, 2**63, 2**70, None, "x", 1.5)),
        *((tiny.tasks[0], (tiny, at)) for at in (-1, 2, 2**32)),
        *((tiny.nodes[0], (of, 0)) for of in (None, 1, {}, tiny.nodes[0])),
        *((network.root, (network, at)) for at in (-1, 99, 2**32)),
        (timeline, (columns[0][:-1], *columns[1:])),
        (timeline, (*columns[:-1], columns[-1][:-1])),
        (obstacle, ((), *obstacle.__getstate__()[1:])),
    ]
    if gs.milp.available_solvers():
        packing = gs.milp.priority_packing(tiny)
        state = packing.__getstate__()
        states += [(packing, (wrong, *state[1:])) for wrong in (b"", state[0][:-4], b"\x05\0\0\0" * 99)]
    for thing, state in states:
        fresh = type(thing).__new__(type(thing))
        with refuses(f"pickled state of {type(thing).__name__}:"):
            fresh.__setstate__(state)
        with refuses("no value"):
            repr(fresh)


DAEMONS = """
import os, sys, threading, time
import gpusched as gs
document = gs.sim.generate_cluster(nodes=300, seed=1).to_json()
document["tasks"][0] |= {"node": None, "gpus": [], "locked": False}
task = document["tasks"][0]["name"]
cluster = gs.Cluster.from_json(document)
calls = {
    "consolidate": lambda: gs.consolidate(cluster),
    "threads": lambda: gs.consolidate(cluster, threads=2),
    "progress": lambda: gs.consolidate(cluster, progress=lambda *_: sum(range(9999))),
    "policy": lambda: gs.place(cluster, task, rankers=[lambda *_: sum(range(999))]),
    "rule": lambda: gs.verify.plan(cluster, plan, rule=lambda *_: sum(range(999)) > 0),
    "read": lambda: gs.Cluster.from_json(document),
}
class Bar:
    def __call__(self, *_):
        pass
    def close(self):
        time.sleep(0.001)
calls["close"] = lambda: gs.consolidate(cluster, progress=Bar())
for name, call in calls.items():
    for wait in (0.05, 0.15):
        child = os.fork()
        if child:
            status = os.waitpid(child, 0)[1]
            if status:
                sys.exit(f"{name}: status {status} after {wait} s")
            continue
        plan = gs.consolidate(cluster)
        def run():
            while True:
                call()
        for _ in range(3):
            threading.Thread(target=run, daemon=True).start()
        time.sleep(wait)
        sys.exit()  # of this child: its interpreter ends while the threads are in their calls
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="os.fork")
def test_threads_within_a_call_survive_the_end_of_the_interpreter() -> None:
    command = [sys.executable, "-c", DAEMONS]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (run.returncode, run.stderr) == (0, ""), run.stderr[-2000:]


def test_results_that_went_through_a_pickle_are_equal(tiny: gs.Cluster) -> None:
    model = gs.milp.consolidation(tiny)
    trace = gs.sim.generate_spot_trace(hours=4, nodes=20)
    results = [
        model,
        model.lp_relaxation(),
        model.elastic(),
        gs.milp.priority_packing(tiny, solver="cbc") if "cbc" in gs.milp.available_solvers() else tiny,
        gs.milp.spot_schedule([{"pods": 1, "gpus": 1, "checkpoints": [1]}], [8], 2, 0.5),
        gs.sim.simulate_host(seeds=[0], duration_s=60),
        gs.sim.replay_spot(trace),
        gs.topology.NetworkTree(tiny),
    ]
    if gs.milp.available_solvers():
        results.append(model.solve())
        results.append(model.solve(time_limit=0.0))
    for result in results:
        again = pickle.loads(pickle.dumps(result))
        assert again == result and again is not result, result
        assert copy.deepcopy(result) == result
        assert result != 3 and repr(result)
    assert model != model.lp_relaxation() and model != gs.milp.consolidation(tiny, form="classes")
    assert gs.sim.simulate_host(seeds=[0], duration_s=60) != gs.sim.simulate_host(seeds=[1], duration_s=60)
    assert tiny.nodes == tiny.nodes and tiny.nodes != tiny.copy().nodes and tiny.nodes != tiny.tasks


def test_a_read_plan_equals_the_plan_that_was_written(tiny: gs.Cluster, tmp_path: Path) -> None:
    plan = gs.consolidate(tiny)
    plan.to_json(tmp_path / "plan.json")
    assert gs.Plan.from_json(plan.to_json()) == plan == gs.Plan.from_json(tmp_path / "plan.json")
    assert plan.stop_reason == "completed" and gs.Plan.from_json(plan.to_json()).stop_reason is None


def test_a_path_with_a_nul_names_no_file(tiny: gs.Cluster, tmp_path: Path) -> None:
    plan = gs.consolidate(tiny)
    tiny.to_json(tmp_path / "cluster.json")
    plan.to_json(tmp_path / "plan.json")
    before = sorted(tmp_path.iterdir())
    for call, name in (
        (tiny.to_json, "new"),
        (plan.to_json, "new"),
        (gs.milp.consolidation(tiny).write_mps, "new"),
        (gs.milp.consolidation(tiny).write_lp, "new"),
        (gs.Cluster.from_json, "cluster.json"),
        (gs.Plan.from_json, "plan.json"),
        (lambda path: gs.verify.plan(path, plan), "cluster.json"),
        (gs.io.read_hwloc, "cluster.json"),
    ):
        with pytest.raises(gs.InvalidInput, match="NUL"):
            call(f"{tmp_path / name}\0 of another name")
    assert sorted(tmp_path.iterdir()) == before


def test_values_that_json_cannot_hold_are_reported_together() -> None:
    bad = document(
        [make_node("n0", gpu_model="half \ud800")], [make_task("t", move_cost=10**5000)], now=float("inf")
    )
    bad["x-keys"] = {"\udfff": 1, 10**5000: {"in": "\ud801"}}
    with pytest.raises(gs.InvalidInput) as raised:
        gs.Cluster.from_json(bad)
    found = raised.value.problems
    assert len(found) == 6
    assert mentions(found, "<dict>: /nodes/0/gpu_model: 'half \\ud800'; half of a surrogate pair")
    assert mentions(found, "<dict>: /tasks/0/move_cost: 16610 bits; expected at most 1024")
    assert mentions(found, "<dict>: /now: inf; expected a finite number")
    assert mentions(found, "<dict>: /x-keys: key '\\udfff'; half of a surrogate pair")
    assert mentions(found, "<dict>: /x-keys: key a value of type int; expected a string")
    assert mentions(found, "<dict>: /x-keys/a value of type int/in: '\\ud801'; half of a surrogate pair")
    for problem in found:
        problem.encode()  # can be printed


def test_every_mapping_is_a_document(tiny: gs.Cluster) -> None:
    from types import MappingProxyType

    text = copy.deepcopy(tiny_document())
    text["nodes"] = [MappingProxyType(node) for node in text["nodes"]]
    assert gs.Cluster.from_json(MappingProxyType(text)) == tiny
    text["tasks"][0]["labels"] = MappingProxyType({"a": {1}})
    with refuses("<dict>: /tasks/0/labels/a: {1} of type set; expected a list"):
        gs.Cluster.from_json(MappingProxyType(text))
