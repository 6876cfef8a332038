# SPDX-License-Identifier: Apache-2.0
"""Tables: where pickles say that they live, parts of them, and types of columns that do not depend on the
rows.
"""

from __future__ import annotations

import copy
import pickle
import pickletools
from pathlib import Path
from typing import Any

import gpusched as gs
import pytest
from clusters import document, make_node, make_task
from gpusched import serving
from gpusched.fragmentation import Report, Row, Table
from gpusched.serving import DeploymentCosts
from messages import refuses

STORED = Path(__file__).resolve().parents[2] / "golden" / "python" / "tables.pickle"
REQUEST: dict[str, Any] = {
    "gpus": {"H100": {"available": 4, "price": 3.0}},
    "models": {"Llama-3-8B": {"workloads": {"chat": {"input": 496, "output": 510, "rate": 1.0}}}},
}


def private(module: str) -> bool:
    return any(part.startswith("_") for part in module.split("."))


def stored() -> list[Any]:
    """What `tables.pickle` holds: `pickle.dumps(stored(), protocol=4)`, made when the names became public."""
    numbers = ("fractional", "stranded", "insufficient_cpu", "total_idle")
    columns = ("gpus", "cpu_cores", *numbers, *(f"{name}_pct" for name in numbers[:3]))
    costs = dict.fromkeys(("model", "gpu", "deployment"), "text") | {"gpus": "whole"}
    costs |= {"price": "number", "dollars_p90": "number"}
    slots = Table(("gpu_model", "across", "within", "loss"), [("A100", 3, 2, 1), ("*", 3, 2, 1)])
    return [
        Report(columns, [(8, 64, 0.5, 2.0, 1.0, 10.0, 5.0, 20.0, 10.0)]),
        slots,
        slots[0],
        DeploymentCosts(costs, [("Llama-3-8B", "H100", "H100 tp1", 1, 3.0, None)]),  # type: ignore[arg-type]
    ]


def test_pickles_of_earlier_builds_load() -> None:
    made, found = stored(), pickle.loads(STORED.read_bytes())
    assert found == made and list(map(str, found)) == list(map(str, made))
    assert [type(thing) for thing in found if isinstance(thing, Table)] == [Report, Table, DeploymentCosts]
    assert [table.kinds for table in found if isinstance(table, Table)] == [
        t.kinds for t in made if isinstance(t, Table)
    ]
    assert isinstance(found[2], Row) and found[2].loss == 1 == copy.deepcopy(found[2])["loss"]


def test_pickles_of_tables_name_no_private_module() -> None:
    curve = serving.curve(REQUEST, rates=[1.0])
    pickled = pickle.dumps([*stored(), curve, curve[0], serving.deployment_costs(REQUEST)], protocol=4)
    texts = [arg for _, arg, _ in pickletools.genops(pickled) if isinstance(arg, str)]
    modules = {text.split(" ")[0] for text in texts if text.startswith("gpusched")}
    assert {"gpusched.fragmentation", "gpusched.serving"} <= modules
    assert not [name for name in modules if private(name)]
    again = pickle.loads(pickled)[4]
    assert again == curve and again.plans == curve.plans and str(again) == str(curve)


def test_a_part_of_a_table_is_a_table(small: gs.Cluster) -> None:
    pytest.importorskip("pandas")
    report = gs.fragmentation.report(small, "asi")
    for part in (slice(2), slice(-3, None), slice(None, None, -2), slice(5, 5)):
        found = report[part]
        assert type(found) is Report and list(found) == list(report)[part] and found.columns == report.columns
        assert list(found.to_pandas()["stranded"]) == report.column("stranded")[part]
        assert list(found.to_pandas().dtypes) == list(report.to_pandas().dtypes)
    assert len(report) == 8
    rows = Table({"a": "whole"}, [(i,) for i in range(5)])[1:3]
    assert type(rows) is Table and rows.column("a") == [1, 2] and rows == Table(["a"], [(1,), (2,)])


def test_parts_of_curves_have_their_plans_and_parts_of_costs_their_best() -> None:
    curve = serving.curve(REQUEST, rates=[1.0, 2.0, 3.0])
    part = curve[1:]
    assert type(part) is serving.Curve and part.column("rate") == [2.0, 3.0] and part.plans == curve.plans[1:]
    assert [point["rate"] for point in serving.curve_to_dict(part)["points"]] == [2.0, 3.0]
    costs = serving.deployment_costs(REQUEST)
    assert len(costs) > 1 and costs[:1].best() == costs[:1] == costs.of(deployment=costs[0].deployment)


def same_types(tables: list[Table]) -> None:
    pytest.importorskip("pandas")
    pa = pytest.importorskip("pyarrow")
    assert {str(table.to_arrow().schema) for table in tables} == {str(tables[0].to_arrow().schema)}
    assert {str(list(table.to_pandas().dtypes)) for table in tables} == {
        str(list(tables[0].to_pandas().dtypes))
    }
    assert not any(pa.types.is_null(type_) for table in tables for type_ in table.to_arrow().schema.types)


def test_types_of_curves_and_costs_do_not_depend_on_the_rows() -> None:
    curve = serving.curve(REQUEST, rates=[1.0], targets=[{"ttft_p90_s": 2.0}])
    dear = serving.curve(REQUEST, rates=[1e6])
    assert dear[0].cost is None and curve[0].cost is not None
    same_types([curve, dear, curve[:0]])
    costs = serving.deployment_costs(REQUEST, (90,), simulated_requests=50)
    same_types([costs, costs[:0]])


def test_types_of_unusable_nodes_do_not_depend_on_the_rows() -> None:
    """Half a GPU is half a GPU in frames, too."""
    task = make_task("t", node="n", gpus=[0], gpu_share_milli=500, cpu_milli=1000)
    cluster = gs.Cluster.from_json(document([make_node("n", gpu_count=1)], [task]))
    found, nothing = (gs.fragmentation.unusable_nodes(cluster, shape) for shape in ((1, 1000), (1, 0)))
    same_types([found, found[:0], nothing])
    assert list(found.to_pandas()["gpus"]) == found.to_arrow()["gpus"].to_pylist() == [0.5]
    assert found.to_arrow()["tasks"].to_pylist() == [["t"]]


def test_types_of_other_tables_do_not_depend_on_the_rows(tiny: gs.Cluster) -> None:
    empty = gs.Cluster.from_json(document([], []))
    for made in (gs.fragmentation.switch_slots, gs.fragmentation.largest_job, gs.fragmentation.server_ratios):
        same_types([table := made(tiny), table[:0], made(empty)])
    hosts = gs.sim.compare_hosts(["static"], seeds=[0], duration_s=60)
    same_types([hosts, hosts[:0]])


def test_user_defined_columns_have_their_kind() -> None:
    pytest.importorskip("pandas")
    kinds = {"name": "text", "gpus": "whole", "share": "number", "tasks": "texts"}
    same_types([Table(kinds, []), Table(kinds, [("a", 1, None, [])]), Table(kinds, [(None, 1, 2,
        ["t"])])])  # type: ignore[arg-type]
    # Names alone: as pandas finds them, whatever columns of the library have the name.
    assert list(Table(["gpus"], [(2.5,)]).to_pandas()["gpus"]) == [2.5]
    with refuses("columns['a']: 'txt'; expected one of text, whole, did you mean 'text' or 'texts'"):
        Table({"a": "txt"}, [])  # type: ignore[dict-item]
