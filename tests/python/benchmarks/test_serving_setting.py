# SPDX-License-Identifier: Apache-2.0
"""The inputs of the serving benchmarks: two readings of Table 1 and of Table 5, and a bound that needs no
solver.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import gpusched as gs
import pytest

FOLDER = Path(__file__).resolve().parents[3] / "benchmarks" / "serving"


@pytest.fixture(scope="module")
def modules() -> Iterator[tuple[ModuleType, ModuleType]]:
    """paper.py and setting.py, as a script imports them."""
    sys.path.insert(0, str(FOLDER))
    try:
        import paper  # type: ignore[import-not-found]
        import setting  # type: ignore[import-not-found]

        yield paper, setting
    finally:
        sys.path.remove(str(FOLDER))
        for name in ("paper", "setting"):
            sys.modules.pop(name, None)


def test_two_tables_of_gpus(modules: tuple[ModuleType, ModuleType]) -> None:
    of = modules[1].setting
    names = ("A6000", "A100", "H100", "4090")
    assert [(of("printed").gpus[n].tflops, of("printed").gpus[n].bandwidth_gb_s) for n in names] == [
        (91, 960), (312, 1555), (1979, 3350), (83, 1008)
    ]  # fmt: skip
    assert [(of("dense").gpus[n].tflops, of("dense").gpus[n].bandwidth_gb_s) for n in names] == [
        (154.8, 768), (312, 2039), (989, 3350), (165.2, 1008)
    ]  # fmt: skip
    asked = of("printed").request({}, (1, 1, 1, 1, 1, 1), 15)
    assert asked["gpus"]["A6000"]["tflops"] == 91
    assert {n: g.price for n, g in of("printed").gpus.items()} == {
        n: g.price for n, g in of("dense").gpus.items()
    }


@pytest.mark.parametrize(("gpus", "ratio"), [("printed", 1.149), ("dense", 0.943)])
def test_bandwidth_per_dollar_of_workstation_gpus(
    modules: tuple[ModuleType, ModuleType], gpus: str, ratio: float
) -> None:
    """(960 / 0.83 + 696 / 0.55 + 864 / 0.83) / 3 over (1555 / 1.75 + 3350 / 2.99) / 2; A6000 has 768 and A100
    2,039 GB/s in data sheets.
    """
    assert modules[0].against_data_centre(
        modules[1].setting(gpus), "workstation", "bandwidth_gb_s"
    ) == pytest.approx(ratio, abs=5e-4)


def test_two_orders_of_the_kinds(modules: tuple[ModuleType, ModuleType]) -> None:
    setting = modules[1]
    mean = {}
    for kinds in setting.KINDS:
        shapes = setting.setting(kinds=kinds).shapes
        assert shapes[0] == (2455, 18) and shapes[8] == (496, 510) and len(set(shapes)) == 9
        mean[kinds] = tuple(
            round(sum(share * shape[at] for share, shape in zip(setting.TRACES[1], shapes)) / 100)
            for at in (0, 1)
        )
    assert mean == {"input-major": (1225, 164), "output-major": (1763, 273)}


@pytest.mark.parametrize("kinds", ["input-major", "output-major"])
def test_a_surge_has_more_short_outputs_alone(modules: tuple[ModuleType, ModuleType], kinds: str) -> None:
    of = modules[1].setting(kinds=kinds)
    surge = of.surge((1.0,) * 9)
    assert {shape for shape, share in zip(of.shapes, surge) if share == 3} == {
        (2455, 18),
        (824, 18),
        (496, 18),
    }
    assert sorted(set(surge)) == [1, 3]


def test_small_budgets_gain_more_than_divided_replicas_would_and_no_more_than_the_bound(
    modules: tuple[ModuleType, ModuleType],
) -> None:
    """70B on trace 3 with Table 1 as printed: per $ H100 is best for every kind, and mixing types pays all
    the same.
    """
    pytest.importorskip("highspy")
    paper, setting = modules
    of = setting.setting("printed")
    run = paper.Run(of, None, {"mip_gap": 0.05, "solver": "highs", "time_limit": 60})
    models = of.model("Llama-3-70B", setting.TRACES[2])
    alone = run.rate("trace3", models, 15, of.affordable(15), ("H100",))
    mixed = gs.serving.plan_serving(
        of.request(models, setting.AVAILABLE[0], 15), mip_gap=0.05, solver="highs", time_limit=60
    )
    assert 1.1 * alone < mixed.requests_per_s <= run.at_most(models, 15)


def test_a_model_that_only_the_benchmark_knows(modules: tuple[ModuleType, ModuleType]) -> None:
    of = modules[1].setting()
    asked = of.request(of.model("Llama-1-30B", modules[1].TRACES[1]), modules[1].AVAILABLE[0], 5.0)
    plan = gs.serving.plan_serving(asked, time_limit=20, mip_gap=0.1)
    assert plan.requests_per_s > 0
