"""Options of the search as a dict: the same as the keywords, and never both."""

from __future__ import annotations

import gpusched as gs
import pytest


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
    ("options", "names"),
    [
        ({"search": {"depth": 1}, "depth": 2}, ["depth", "search"]),
        ({"search": {"depht": 1}}, ["search", "'depht'", "depth"]),
        ({"search": {"depth": 0}}, ["depth", "0"]),
        ({"search": {"seed": 0}}, ["search", "'seed'"]),
        ({"search": [1]}, ["search", "[1]", "a dict"]),
    ],
)
def test_bad_search_options_are_named(
    cluster: gs.Cluster, options: dict[str, object], names: list[str]
) -> None:
    with pytest.raises(gs.InvalidInput) as found:
        gs.consolidate(cluster, **options)  # type: ignore[arg-type]
    assert all(name in str(found.value) for name in names)


def test_all_problems_come_together(cluster: gs.Cluster) -> None:
    with pytest.raises(gs.InvalidInput) as found:
        gs.consolidate(cluster, search={"rounds": "x", "partition_size": "y"}, max_moves="z")  # type: ignore[arg-type]
    assert {problem.split(":")[0] for problem in found.value.problems} == {
        "rounds",
        "partition_size",
        "max_moves",
    }
