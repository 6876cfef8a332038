# SPDX-License-Identifier: Apache-2.0
"""Messages name wrong arguments, and the nearest known names for unknown ones."""

import gpusched as gs
import pytest
from clusters import document, make_node, make_task
from gpusched import _solvers
from messages import mention, mentions, problems_in, refuses

SETS = gs.preemption.minimal_victim_sets


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda c: gs.consolidate(3), "consolidate() cluster 3 Cluster"),
        (lambda c: SETS(c, make_task("t"), 3), "minimal_victim_sets() node 3 Node"),
        (lambda c: gs.topology.NetworkTree(3), "NetworkTree() cluster 3 Cluster"),
        (lambda c: gs.topology.NetworkTree(c).vertex(1), "NetworkTree.vertex() node 1 Node"),
        (lambda c: c.nodes[1.5], "Nodes.__getitem__(): 1.5; expected an integer, a slice or a string"),
        (lambda c: c.nodes.index(1), "Nodes.index(): name: 1; expected a string"),
        (lambda c: gs.sim.kingman_wait("a", "b", 1.0, 1.0), "kingman_wait()"),
        (lambda c: gs.sim.kingman_wait(10**400, 1.0, 1.0, 1.0), "kingman_wait(): expected"),
        (lambda c: gs.apply(c, 3), "plan: 3; expected a Plan, a dict or the path of a file"),
        (lambda c: gs.verify.plan(3, {}), "cluster: 3; expected a Cluster, a dict or the path of a file"),
        (lambda c: gs.place(c, 3), "task: 3; expected a dict, the name of a pending task, or a Task"),
        (lambda c: gs.Cluster.from_json(3), "source: 3; expected a dict or the path of a file"),
        (lambda c: gs.consolidate(c, progress=3), "progress 3 True False None"),
        (lambda c: gs.io.read_hardware(3), "path 3 os.PathLike"),
        (lambda c: gs.fragmentation.typical_workload(c.tasks), "tasks <2 tasks> Trace Cluster"),
        (lambda c: gs.fragmentation.fgd(c, 3), "workload 3 Workload Trace Cluster"),
        (lambda c: gs.preemption.preempt_gang(c, [{"count": 2}]), "pods [{'count' 2}] job names pending"),
        (lambda c: gs.allocate_many(c, "x"), "jobs: 'x'; expected a list of jobs"),
    ],
)
def test_misfits_name_argument_value_and_expectation(tiny, call, told):
    with pytest.raises(gs.InvalidInput) as raised:
        call(tiny)
    assert isinstance(raised.value, TypeError)  # as Python's own functions
    assert mentions(str(raised.value), told)
    assert "incompatible" not in str(raised.value) and "Invoked" not in str(raised.value)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda c: gs.apply(c), "apply() missing a required argument: 'plan'"),
        (lambda c: gs.apply(c, {}, 3), "apply() too many positional arguments"),
        (lambda c: gs.apply(c, plam={}), "apply() missing a required argument: 'plan'"),
        (lambda c: gs.sim.replay(), "replay() missing a required argument: 'trace'"),
    ],
)
def test_calls_with_other_parameters_are_type_errors(tiny, call, told):
    with pytest.raises(TypeError) as raised:
        call(tiny)
    assert mentions(str(raised.value), told)
    assert "incompatible" not in str(raised.value)


def test_wrong_types_of_several_arguments_come_together(tiny):
    assert mention(
        problems_in(SETS, 3, {}, 4),
        ["minimal_victim_sets() cluster 3 Cluster", "minimal_victim_sets() node 4 Node"],
    )


def test_type_errors_of_callers_functions_surface_unchanged(tiny):
    def ranker(cluster, task, node):
        return gs.consolidate(7)

    task = {"name": "t", "gpu_count": 1, "cpu_milli": 1, "memory_mib": 1}
    with refuses("consolidate() cluster 7 Cluster"):
        gs.place(tiny, task, rankers=[ranker])


MINE = KeyError("mine")


def fail(*_):
    raise MINE


FULL = gs.Cluster.from_json(
    document(
        [make_node("n", gpu_count=1)],
        [make_task("low", node="n", gpus=[0], preemptible=True), make_task("high", priority=9)],
    )
)
EMPTY = gs.Cluster.from_json(document([make_node("n")], []))
TRACE = gs.sim.Trace([make_node("n")], [make_task("t", arrival=0)])
SPOT_TRACE = gs.sim.SpotTrace([make_node("n")], [make_task("t", priority_class="LP", work_s=1)])


@pytest.mark.parametrize(
    "call",
    [
        lambda: gs.place(EMPTY, make_task("t"), filters=[fail]),
        lambda: gs.place(EMPTY, make_task("t"), rankers=[fail]),
        lambda: gs.place(EMPTY, make_task("t"), gpu_picker=fail),
        lambda: gs.preempt(FULL, "high", cost=fail),
        lambda: gs.preempt(FULL, "high", policy=fail),
        lambda: gs.preemption.OnlinePreemption(FULL, cost=fail).decide("high"),
        lambda: gs.sim.replay(TRACE, placement=fail),
        lambda: gs.sim.replay_spot(SPOT_TRACE, rankers=["packing", fail]),
        lambda: gs.sim.replay_spot(SPOT_TRACE, observer=fail),
    ],
)
def test_exceptions_of_callers_functions_surface_unchanged(call):
    with pytest.raises(KeyError) as raised:
        call()
    assert raised.value is MINE


@pytest.mark.parametrize(
    ("call", "error", "hint"),
    [
        (lambda c: gs.consolidate(c, partition_sise=3), TypeError, "'partition_size'"),
        (lambda c: gs.consolidate(c, preset="bestt"), gs.InvalidInput, "'best'"),
        (lambda c: gs.place(c, make_task("new"), rankers=["gpu-packing"]), gs.InvalidInput, "'gpu_packing'"),
        (lambda c: c.tasks["smal"], KeyError, "'small'"),
        (lambda c: c.nodes.index("N0"), ValueError, "'n0'"),
        (lambda c: gs.consolidate(c, exempt=["nO", "N1"]), gs.InvalidInput, "'n1'"),
        (lambda c: gs.control.mig_layout("A100-80"), gs.InvalidInput, "'A100-80GB'"),
        (lambda c: gs.fragmentation.report(c, shapes=[(1, 8)])[0]["strand"], KeyError, "'stranded'"),
        (lambda c: _solvers.find("highs2", []), gs.InvalidInput, "'highs'"),
        (lambda c: gs.allocate(c, {"name": "j", "pods": [{"cout": 2}]}), gs.InvalidInput, "'count'"),
        (lambda c: gs.sim.simulate_host(overrides={"dwel": 3}), gs.InvalidInput, "'dwell'"),
        (lambda c: gs.topology.HardwareGraph.preset("h100"), gs.InvalidInput, "'h100x8'"),
        (lambda c: gs.fragmentation.fgd(c, [{"cpu_mili": 3}]), gs.InvalidInput, "'cpu_milli'"),
    ],
)
def test_unknown_names_get_the_nearest_ones(tiny, call, error, hint):
    with pytest.raises(error) as raised:
        call(tiny)
    assert mentions(str(raised.value), f"did you mean {hint}")


def test_nodes_and_tasks_stand_for_their_names(tiny):
    """Wherever a name may be given, also in a list of both, and of another snapshot."""
    for cluster in (tiny, gs.Cluster.from_json(tiny.to_json())):
        n0, n1 = cluster.nodes["n0"], cluster.nodes["n1"]
        small = cluster.tasks["small"]
        plan = gs.consolidate(tiny)
        assert gs.consolidate(tiny, exempt=[n0, "n1"]) == gs.consolidate(tiny, exempt=["n0", "n1"])
        assert gs.consolidate(tiny, clear=[n0]) == gs.consolidate(tiny, clear=["n0"])
        explain = gs.consolidation.explain
        assert str(explain(tiny, plan, n0, exempt=(n1,))) == str(explain(tiny, plan, "n0", exempt=["n1"]))
        assert str(gs.explain_move(tiny, small, n1)) == str(gs.explain_move(tiny, "small", "n1"))
        assert (
            gs.order_into_waves(tiny, [(small, n1)]).plan == gs.order_into_waves(tiny, [("small", "n1")]).plan
        )
        tree = gs.topology.NetworkTree(tiny)
        assert tree.vertex(n0) == tree.vertex("n0") and tree.ancestor(n0, 0) == tree.ancestor("n0", 0)
        new = make_task("new")
        assert SETS(tiny, new, n0) == SETS(tiny, new, "n0")
        job = {"name": "a-job", "pods": [make_task("x", count=1)]}
        del job["pods"][0]["name"]
        assert gs.admit(tiny, job, spare=[small]) == gs.admit(tiny, job, spare=["small"])
        waiting = gs.allocation.with_task(tiny, new)
        pending = waiting.tasks["new"]
        assert gs.admit(waiting, [pending]) == gs.admit(waiting, pending) == gs.admit(waiting, "new")
        assert gs.preemption.preempt_gang(waiting, [pending]) == gs.preemption.preempt_gang(waiting, ["new"])
        index = gs.preemption.OnlinePreemption(waiting)
        assert index.decide(pending) == index.decide("new")
        index.fail_gpu(n0, 0)
        assert index.failed_gpus(n0) == index.failed_gpus("n0") == [0]
        index.remove(small)
        assert index.cluster().tasks["small"].node is None
    with refuses("exempt: unknown node 'elsewhere'"):
        gs.consolidate(tiny, exempt=[gs.Cluster.from_json(document([make_node("elsewhere")], [])).nodes[0]])


HALF = "a\ud800b"


@pytest.mark.parametrize(
    ("field", "call"),
    [
        ("level", lambda c: gs.allocate(c, {"name": "j", "pods": []}, level=HALF)),
        ("task", lambda c: gs.place(c, HALF)),
        ("job", lambda c: gs.allocate(c, HALF)),
        ("job key", lambda c: gs.allocate(c, {HALF: 3})),
        ("rankers", lambda c: gs.place(c, make_task("t"), rankers=[HALF])),
        ("path", lambda c: gs.Cluster.from_json(HALF)),
        ("path", lambda c: c.to_json(HALF)),
        ("pods", lambda c: gs.preemption.preempt_gang(c, [HALF])),
        ("device", lambda c: gs.control.mig_layout(HALF)),
        ("workload /0 key", lambda c: gs.fragmentation.fgd(c, [{HALF: 3}])),
    ],
)
def test_halves_of_surrogate_pairs_are_reported_with_their_field(tiny, field, call):
    with pytest.raises(gs.InvalidInput) as raised:
        call(tiny)
    assert mentions(str(raised.value), f"{field} {HALF!r}; expected text, found half of a surrogate pair")


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: gs.preemption.StandbyLease("o", "n", [0], seed=-1), "seed -1 0 18446744073709551615"),
        (lambda: gs.preemption.StandbyLease("o", "n", [2**40]), "gpus 1099511627776 0 63"),
        (lambda: gs.control.mig_layout("A100-80GB", [("2g", "x")]), "instances[0][1] 'x' 0 7"),
        (lambda: gs.control.mig_layout("A100-80GB", ["2g"]), "instances[0]: '2g'; expected a pair"),
        (lambda: gs.control.mig_layout("A100-80GB").create("2g", 2**70), "start 1180591620717411303424 0 7"),
        (
            lambda: gs.topology.HardwareGraph.preset("a100x8").best_gpus(2**70),
            "count 1180591620717411303424 -2147483648 2147483647",
        ),
    ],
)
def test_integers_out_of_range_are_reported_with_their_range(call, told):
    with refuses(told):
        call()


def test_workloads_take_all_fields_of_their_table(tiny):
    shape = {"gpu_count": 1, "cpu_milli": 1000, "memory_mib": 1, "weight": 2}
    assert gs.fragmentation.Workload([shape]).shapes[0].memory_mib == 1
    assert gs.fragmentation.fgd(tiny, [shape]) == gs.fragmentation.fgd(
        tiny, gs.fragmentation.Workload([shape])
    )


def test_names_that_nothing_resembles_get_no_suggestion(tiny):
    with pytest.raises(gs.InvalidInput, match="^exempt: unknown node 'somewhere else'$"):
        gs.consolidate(tiny, exempt=["somewhere else"])
    assert gs._core.did_you_mean("", []) == ""
    assert gs._core.did_you_mean("abc", ["xyz"]) == ""
    long = "x" * 100
    assert gs._core.did_you_mean(long + "1", [long + "2", "y" * 100]) == f"; did you mean '{long}2'?"
