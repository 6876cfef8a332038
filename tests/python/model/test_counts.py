# SPDX-License-Identifier: Apache-2.0
"""Arrays of whole numbers are int64 and read-only, whatever the library stores; one name for each meaning."""

import gpusched as gs
import numpy as np
import pytest
from clusters import document, make_node, make_task


def arrays(thing):
    return {name: value for name in dir(thing) if isinstance(value := getattr(thing, name), np.ndarray)}


@pytest.fixture(scope="module")
def many():
    nodes = [make_node(f"n{i}", gpu_count=14) for i in range(59)]
    return gs.Cluster.from_json(
        document(nodes, [make_task(f"t{i}", node=f"n{i}", gpus=[0]) for i in range(59)])
    )


def test_sums_do_not_wrap(many):
    assert sum(many.nodes.gpu_count) == many.nodes.gpu_count.sum() == 826
    assert sum(many.tasks.gpu_count * many.tasks.gpu_share_milli) == 59000
    assert int((many.nodes.gpu_count[0] - many.tasks.gpu_count[0]) * 1000 * 100) == 1_300_000


@pytest.mark.parametrize("make", [
    lambda c: c.nodes,
    lambda c: c.tasks,
    lambda c: gs.sim.simulate_host(variant="static", seeds=[0], duration_s=60),
    lambda c: gs.milp.consolidation(c),
])  # fmt: skip
def test_columns_of_whole_numbers_are_int64(small, make):
    found = arrays(make(gs.sim.generate_cluster(nodes=20)))
    assert found
    for name, array in found.items():
        if name in ("column_start", "row_index"):
            assert array.dtype == np.int32, name  # as scipy and HiGHS take a sparse matrix
        else:
            assert array.dtype in (np.int64, np.float64, np.bool_), (name, array.dtype)
        assert not array.flags.writeable, name


def test_arrays_of_64_bits_are_views(many):
    first, second = many.nodes.cpu_milli, many.nodes.cpu_milli
    assert np.shares_memory(first, second)


def test_lists_masks_and_counts_of_gpus_have_names_of_their_own():
    c = gs.Cluster.from_json(
        document(
            [make_node("a", failed_gpus=[1, 7]), make_node("b", gpu_count=2)],
            [make_task("t", node="a", gpus=[0, 2], gpu_count=2)],
        )
    )
    a, nodes = c.nodes["a"], c.nodes
    assert (a.idle_gpus, a.idle_gpu_count) == ([3, 4, 5, 6], 4)
    assert (a.failed_gpus, a.failed_gpu_count) == ([1, 7], 2)
    assert nodes.idle_gpu_mask.tolist() == [0b1111000, 0b11]
    assert nodes.idle_gpu_count.tolist() == [4, 2]
    assert nodes.failed_gpu_mask.tolist() == [0b10000010, 0]
    assert nodes.failed_gpu_count.tolist() == [2, 0]
    assert c.tasks["t"].gpus == [0, 2] and c.tasks.gpu_mask.tolist() == [0b101]
    assert not hasattr(nodes, "idle_gpus") and not hasattr(c.tasks, "gpus")
    assert repr(a) == "<gpusched.Node 'a': 8 x A100, 1 task, 2 failed GPUs>"
    assert repr(c) == "<gpusched.Cluster: 2 nodes, 10 GPUs, 1 task>"
