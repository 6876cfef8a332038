# SPDX-License-Identifier: Apache-2.0
"""`gpusched plan-serving`: mistakes in its files, and budgets."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from gpusched import cli, serving
from messages import mention, mentions, problems_in, refused, refuses
from schemas import validator
from solvers import needs_solver


def request() -> dict[str, Any]:
    workloads = {
        "long": {"input": 2455, "output": 18, "requests": 700},
        "chat": {"input": 496, "output": 510, "requests": 300},
    }
    return {
        "budget": 6,
        "gpus": {"H100": {"available": 4}, "A40": {"available": 8, "price": 0.6}},
        "models": {"Llama-3-8B": {"workloads": workloads}},
    }


def test_mistakes_are_reported_with_their_file_and_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked, plan = tmp_path / "request.json", tmp_path / "plan.json"
    command = ["plan-serving", str(asked)]
    document = request()
    document["gpus"]["A40"]["available"] = -1
    document["models"]["Llama-3-8B"]["workloads"]["chat"]["output"] = "x"
    asked.write_text(json.dumps(document))
    plan.write_text(json.dumps({"replicas": [{"model": 3, "count": -1, "stages": []}, "none"]}))
    of_request = [
        f"{asked}: /gpus/A40/available: from 0 to 2147483647, found -1",
        f'{asked}: /models/Llama-3-8B/workloads/chat/output: integer, found "x"',
    ]
    assert mention(refused([*command, "--budgets", "3,6"], capsys), of_request)
    of_plan = [
        f"{plan}: /replicas/0/model: string, found 3",
        f"{plan}: /replicas/0/count: from 0 to 2147483647, found -1",
        f'{plan}: /replicas/1: object, found "none"',
    ]
    found = refused([*command, "--replan-from", str(plan), "--deadline", "3"], capsys)
    assert mention(found, ["--deadline: not with --replan-from", *of_request, *of_plan])


def test_sweep_of_budgets() -> None:
    needs_solver()
    plans = serving.sweep_budgets(request(), [6, 0.1, 3])
    assert list(plans) == [0.1, 3, 6] and plans[0.1].status == "infeasible" and plans[0.1].makespan is None
    assert plans[3].makespan > plans[6].makespan and plans[6].cost <= 6
    assert plans[6].makespan == pytest.approx(serving.plan_serving(request()).makespan, rel=2e-3)
    assert plans[6].cost_per_request == pytest.approx(plans[6].cost * plans[6].makespan / 3600 / 1000)
    single = serving.sweep_budgets(request(), (3.0, 6.0), composition="homogeneous")
    assert all(single[budget].makespan is not None for budget in (3, 6))
    for budgets, message in (
        ([3, 3], "budgets[1]: 3 appears twice"),
        (["3"], "budgets[0]: '3'; expected a number"),
        (3, "budgets: 3; expected a list"),
    ):
        with refuses(message):
            serving.sweep_budgets(request(), budgets)
    with pytest.raises(TypeError, match="deadline"):
        serving.sweep_budgets(request(), [3], deadline=3)
    assert len(problems_in(serving.sweep_budgets, {**request(), "budget": -1}, ["x"], routing="any")) == 3


def test_budgets_on_the_console(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    needs_solver()
    asked, out = tmp_path / "request.json", tmp_path / "sweep.json"
    asked.write_text(json.dumps(request()))
    assert cli.main(["plan-serving", str(asked), "--budgets", "6,0.1,3", "-o", str(out)]) == 0
    lines = capsys.readouterr().out.splitlines()
    document = json.loads(out.read_text())
    sweep = validator("serving-sweep.v2")
    sweep.validate(document)
    broken = copy.deepcopy(document)
    broken["plans"][0]["plan"]["makespan"] = "x"
    assert not sweep.is_valid(broken)
    assert [entry["budget"] for entry in document["plans"]] == [0.1, 3, 6]
    table = [line.split() for line in lines if line.split()[0] in ("0.1", "3", "6")]
    assert table[0][-3:] == ["no", "plan:", "infeasible"]
    for row, entry in zip(table[1:], document["plans"][1:], strict=True):
        plan = entry["plan"]
        assert row[1:3] == [f"{plan['cost']:.2f}", f"{plan['makespan']:.4g}"]
        assert f"{1000 * plan['cost_per_request']:.4g}" in row
        assert all(name in row or f"{name}," in row for name in plan["rented"])
    single = tmp_path / "plan.json"
    single.write_text(json.dumps(document["plans"][2]["plan"]))
    assert cli.main(["plan-serving", str(asked), "--replan-from", str(single)]) == 0
    assert "starts 0 replicas" in capsys.readouterr().out
    assert cli.main(["plan-serving", str(asked), "--budgets", "0.1"]) == 1
    capsys.readouterr()
    for options, message in (
        (["--budgets", "3", "--deadline", "9"], "--deadline: not with --budgets"),
        (["--budgets", "3", "--replan-from", str(single)], "--budgets: not with --replan-from"),
        (["--budgets", "3,-1"], "budgets[1]: -1; at least 0"),
    ):
        assert cli.main(["plan-serving", str(asked), *options]) == 2
        assert mentions(capsys.readouterr().err, message)
    with pytest.raises(SystemExit):
        cli.main(["plan-serving", str(asked), "--budgets", "3,x"])
    assert mentions(capsys.readouterr().err, "--budgets: '3,x' budgets")
