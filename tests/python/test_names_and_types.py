# SPDX-License-Identifier: Apache-2.0
"""Wrong arguments are told in our words, and unknown names with the nearest ones."""

import gpusched as gs
import pytest
from clusters import make_task
from gpusched import _solvers


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda c: gs.consolidate(3), "consolidate(): cluster: 3; expected a Cluster"),
        (lambda c: gs.consolidate(None), "consolidate(): cluster: None; expected a Cluster"),
        (lambda c: gs.apply("x", {}), "apply(): cluster: 'x'; expected a Cluster"),
        (lambda c: gs.preemption.minimal_victim_sets(c, make_task("t"), 3), "minimal_victim_sets(): node: 3; expected a string"),
        (lambda c: gs.topology.NetworkTree(3), "NetworkTree(): cluster: 3; expected a Cluster"),
        (lambda c: gs.topology.NetworkTree(c).vertex(1), "NetworkTree.vertex(): node: 1; expected a string"),
        (lambda c: gs.preemption.lost_work(c, 3), "lost_work(): task: 3; expected a string or a Task"),
        (lambda c: c.nodes[1.5], "Nodes.__getitem__(): 1.5; expected an integer, a slice or a string"),
        (lambda c: c.nodes.index(1), "Nodes.index(): name: 1; expected a string"),
        (lambda c: gs.sim.kingman_wait("a", "b", 1.0, 1.0), "kingman_wait(): "),
    ],
)
def test_misfits_name_argument_value_and_expectation(tiny, call, told):
    with pytest.raises(gs.InvalidInput) as raised:
        call(tiny)
    assert isinstance(raised.value, TypeError)  # as Python's own functions
    assert str(raised.value).startswith(told) or told in str(raised.value)
    assert "incompatible" not in str(raised.value) and "Invoked" not in str(raised.value)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda c: gs.apply(c), "apply() missing a required argument: 'plan'"),
        (lambda c: gs.apply(c, {}, 3), "apply() too many positional arguments"),
        (lambda c: gs.apply(c, plam={}), "apply() "),
        (lambda c: gs.sim.replay(), "replay() missing a required argument: 'trace'"),
    ],
)
def test_calls_with_other_parameters_are_type_errors(tiny, call, told):
    with pytest.raises(TypeError) as raised:
        call(tiny)
    assert str(raised.value).startswith(told)
    assert "incompatible" not in str(raised.value)


def test_wrong_types_of_several_arguments_come_together(tiny):
    with pytest.raises(gs.InvalidInput) as raised:
        gs.preemption.minimal_victim_sets(3, {}, 4)
    assert raised.value.problems == [
        "minimal_victim_sets(): cluster: 3; expected a Cluster",
        "minimal_victim_sets(): node: 4; expected a string",
    ]


def test_numbers_that_fit_no_integer_show_the_call():
    graph = gs.topology.HardwareGraph.preset("a100x8")
    with pytest.raises(gs.InvalidInput, match=r"HardwareGraph.bandwidth\(\): \(.*, 1180591620717411303424, 2\); expected \("):
        graph.bandwidth(2**70, 2)


def test_type_errors_of_callers_functions_surface_unchanged(tiny):
    def ranker(cluster, task, node):
        return gs.consolidate(7)

    task = {"name": "t", "gpu_count": 1, "cpu_milli": 1, "memory_mib": 1}
    with pytest.raises(gs.InvalidInput, match=r"^consolidate\(\): cluster: 7; expected a Cluster$"):
        gs.place(tiny, task, rankers=[ranker])


@pytest.mark.parametrize(
    ("call", "error", "hint"),
    [
        (lambda c: gs.consolidate(c, partition_sise=3), TypeError, "did you mean 'partition_size'?"),
        (lambda c: gs.consolidate(c, preset="bestt"), gs.InvalidInput, "did you mean 'best'?"),
        (lambda c: gs.consolidate(c, preset="Best"), gs.InvalidInput, "did you mean 'best'?"),
        (lambda c: gs.sim.generate_cluster(preset="opnb"), gs.InvalidInput, "did you mean 'openb'?"),
        (lambda c: gs.place(c, make_task("new"), rankers=["gpu-packing"]), gs.InvalidInput, "did you mean 'gpu_packing'"),
        (lambda c: c.tasks["smal"], KeyError, "did you mean 'small'?"),
        (lambda c: c.nodes.index("N0"), ValueError, "did you mean 'n0'"),
        (lambda c: gs.consolidate(c, exempt=["nO", "N1"]), gs.InvalidInput, "did you mean 'n1'"),
        (lambda c: gs.control.mig_layout("A100-80"), gs.InvalidInput, "did you mean 'A100-80GB'"),
        (lambda c: gs.serving.gpu_type("H100-SX"), gs.InvalidInput, "did you mean"),
        (lambda c: gs.fragmentation.report(c, shapes=[(1, 8)])[0]["strand"], KeyError, "did you mean 'stranded' or"),
        (lambda c: _solvers.find("highs2", []), gs.InvalidInput, "did you mean 'highs'"),
    ],
)
def test_unknown_names_get_the_nearest_ones(tiny, call, error, hint):
    with pytest.raises(error) as raised:
        call(tiny)
    assert hint in str(raised.value)


def test_unknown_fields_of_files_get_the_nearest_ones(tiny):
    document = tiny.to_json()
    document["nodes"][0]["gpu_cuont"] = document["nodes"][0].pop("gpu_count")
    with pytest.raises(gs.InvalidInput, match=r"/nodes/0/gpu_cuont: unknown field; .*; did you mean 'gpu_count'"):
        gs.Cluster.from_json(document)


def test_names_that_nothing_resembles_get_no_suggestion(tiny):
    with pytest.raises(gs.InvalidInput, match="^exempt: unknown node 'somewhere else'$"):
        gs.consolidate(tiny, exempt=["somewhere else"])
    assert gs._core.did_you_mean("", []) == ""
    assert gs._core.did_you_mean("abc", ["xyz"]) == ""
    long = "x" * 100
    assert gs._core.did_you_mean(long + "1", [long + "2", "y" * 100]) == f"; did you mean '{long}2'?"
