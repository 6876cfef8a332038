# SPDX-License-Identifier: Apache-2.0
"""Options of the search as a dict: the same as the keywords, and never both."""

from __future__ import annotations

import gpusched as gs
import pytest
from messages import mention, problems_in


@pytest.fixture(scope="module")
def cluster() -> gs.Cluster:
    return gs.sim.generate_cluster(nodes=60, layout="random", seed=3)


def test_search_is_the_same_as_keywords(cluster: gs.Cluster) -> None:
    keywords = gs.consolidate(cluster, depth=1, rounds=2, bound_method="none")
    assert gs.consolidate(cluster, search={"depth": 1, "rounds": 2}, bound_method="none") == keywords
    assert gs.consolidate(cluster, search=None, depth=1, rounds=2, bound_method="none") == keywords
    assert gs.consolidate(cluster, depth=3, bound_method="none") != keywords


def test_admit_takes_search(cluster: gs.Cluster) -> None:
    job = {"name": "new", "pods": [{"count": 2, "gpu_count": 8, "cpu_milli": 64000, "memory_mib": 1}]}
    assert gs.admit(cluster, job, search={"depth": 1, "search_limit": 5}) == gs.admit(
        cluster, job, depth=1, search_limit=5
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"search": {"depth": 1}, "depth": 2}, "depth: given twice, also in search"),
        ({"search": {"depht": 1}}, "search: unknown field 'depht'; did you mean 'depth'"),
        ({"search": {"seed": 0}}, "search: unknown field 'seed'; expected partition_size, depth,"),
        ({"search": [1]}, "search: [1]; expected a dict"),
    ],
)
def test_bad_search_options_are_named(cluster: gs.Cluster, options: dict[str, object], words: str) -> None:
    assert mention(problems_in(gs.consolidate, cluster, **options), [words])


def test_all_problems_come_together(cluster: gs.Cluster) -> None:
    search = {"rounds": "x", "partition_size": "y"}
    found = problems_in(gs.consolidate, cluster, search=search, max_moves="z")
    assert {problem.split(":")[0] for problem in found} == {"rounds", "partition_size", "max_moves"}
