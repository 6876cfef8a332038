"""`gpusched plan-serving`: mistakes in its files, and budgets."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpusched as gs
import pytest
from gpusched import cli, serving
from jsonschema import Draft202012Validator
from messages import mentions, naming
from referencing import Registry, Resource
from solvers import needs_solver

SCHEMAS = Path(__file__).resolve().parents[3] / "docs" / "schema"


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


def problems_of(path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> list[str]:
    """What the command says of a file that it refuses: each problem with the file."""
    assert cli.main(["plan-serving", str(path), *options]) == 2
    printed = capsys.readouterr()
    lines = printed.err.splitlines()
    assert printed.out == "" and all(line.startswith("gpusched: ") for line in lines)
    return [line.removeprefix("gpusched: ") for line in lines]


def change(*path: str | int, value: Any = None, remove: bool = False) -> Callable[[dict[str, Any]], None]:
    def apply(document: Any) -> None:
        for key in path[:-1]:
            document = document[key]
        if remove:
            del document[path[-1]]
        else:
            document[path[-1]] = value

    return apply


MODEL, CHAT = ("models", "Llama-3-8B"), ("models", "Llama-3-8B", "workloads", "chat")
OF_CHAT = "/models/Llama-3-8B/workloads/chat"
WRONG: list[tuple[Callable[[dict[str, Any]], None], list[str]]] = [
    (change("budget", remove=True), ["field 'budget' is missing"]),
    (change("budget", value="much"), ['/budget: expected a number, found "much"']),
    (change("budget", value=-1), ["/budget: expected a finite number of at least 0, found -1"]),
    (change("format", value="gpusched.cluster"), ['/format: expected "gpusched.serving-request", found "gpusched.cluster"']),
    (change("gpus", value=[]), ["/gpus: expected an object by name, found an array"]),
    (change("gpus", remove=True), ["field 'gpus' is missing"]),
    (change("gpus", "A40", value=3), ["/gpus/A40: expected an object, found 3"]),
    (change("gpus", "A40", "available", value=1.5), ["/gpus/A40/available: expected an integer, found 1.5"]),
    (change("gpus", "A40", "available", value=-1), ["/gpus/A40/available: expected an integer from 0 to 2147483647, found -1"]),
    (change("gpus", "A40", "price", value=-2), ["/gpus/A40/price: expected a finite number of at least 0, found -2"]),
    (change("gpus", "A40", "tflop", value=3), ["/gpus/A40/tflop: unknown field; expected one of type, tflops, bandwidth_gb_s,"]),
    (change("gpus", "B300-none", value={"available": 1}), ["/gpus/B300-none: expected a type described in full (tflops, "]),
    (change("gpus", "L40S", value={"available": 1}), ["/gpus/L40S: field 'price' is missing"]),
    (change(*MODEL, "workloads", remove=True), ["/models/Llama-3-8B: field 'workloads' is missing"]),
    (change(*MODEL, "kv_heads", value=64), ["/models/Llama-3-8B/kv_heads: 64; expected 1 to 32"]),
    (change("models", "mine", value={"workloads": {}}), ["/models/mine: expected a model described in full (layers, "]),
    (change(*CHAT, value={"input": 0, "output": "x"}), [
        f"{OF_CHAT}/input: expected an integer from 1 to 2147483647, found 0",
        f'{OF_CHAT}/output: expected an integer, found "x"',
        f"{OF_CHAT}: field 'rate' or 'requests' is missing",
    ]),
    (change(*CHAT, "requests", value=-3), [f"{OF_CHAT}/requests: expected a finite number of at least 0, found -3"]),
    (change("measured", value={}), ["/measured: expected an array, found an object"]),
    (change("measured", value=[{"model": "m", "deployment": "A40 1x1", "workload": "chat", "requests_per_s": -1}]), [
        "/measured/0/requests_per_s: expected a finite number of at least 0, found -1",
        "/measured/0: there is no model 'm'",
    ]),
    (change("measured", value=[
        {"model": "Llama-3-8B", "deployment": "A40 1x1", "workload": "chat", "requests_per_s": 2 + i} for i in (0, 1)
    ]), [
        "/measured/1: appears twice for 'chat' of 'Llama-3-8B'",
    ]),
    (change("typo", value=1), ["/typo: unknown field; expected one of format, version, budget, targets, gpus, models, measured, or "]),
]  # fmt: skip


@pytest.mark.parametrize(("spoil", "told"), WRONG)
def test_a_mistake_in_a_request_is_told_with_file_and_place(
    spoil: Callable[[dict[str, Any]], None], told: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = tmp_path / "request.json"
    document = request()
    spoil(document)
    asked.write_text(json.dumps(document))
    for options in ([], ["--budgets", "3,6"]):
        found = problems_of(asked, capsys, *options)
        assert len(found) == len(told)
        for problem, part in zip(found, told):
            assert problem.startswith(f"{asked}: {part}")


def test_all_mistakes_of_both_files_come_in_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document, expected = request(), []
    for spoil, told in WRONG:
        changed = copy.deepcopy(document)
        try:
            spoil(changed)
        except (KeyError, TypeError):
            continue
        # One mistake per place: what takes a whole section away hides the others.
        hiding = ("/format", "/gpus:", "field 'gpus'", "/measured", "/gpus/A40", "field 'budget'", "/budget: expected a number")
        if told[0].startswith(hiding):
            continue
        if "'workloads' is missing" in told[0] or "found -3" in told[0]:
            continue
        document, expected = changed, expected + told
    asked, plan = tmp_path / "request.json", tmp_path / "plan.json"
    asked.write_text(json.dumps(document))
    replicas = [{"model": 3, "count": -1, "stages": [{"gpu": "A40", "degree": "x"}]}, "none", {"stages": {}}]
    plan.write_text(json.dumps({"replicas": replicas}))
    found = problems_of(asked, capsys, "--replan-from", str(plan), "--deadline", "3")
    parts = ["--deadline: not with --replan-from", *(f"{asked}: {part}" for part in sorted(expected))]
    parts += [f"{plan}: {part}" for part in (
        "/replicas/0/model: expected a string, found 3",
        "/replicas/0/count: expected an integer from 0 to 2147483647, found -1",
        '/replicas/0/stages/0/degree: expected an integer, found "x"',
        "/replicas/0/stages/0: field 'layers' is missing",
        '/replicas/1: expected an object, found "none"',
        "/replicas/2/stages: expected an array, found an object",
        "/replicas/2: field 'model' is missing",
        "/replicas/2: field 'count' is missing",
    )]  # fmt: skip
    first, rest = found[:1], found[1:]
    of_request = sorted(problem for problem in rest if problem.startswith(str(asked)))
    of_plan = [problem for problem in rest if problem.startswith(str(plan))]
    assert len(of_request) == len(expected) > 8
    for problem, part in zip([*first, *of_request, *of_plan], parts, strict=True):
        assert problem.startswith(part)


def test_texts_that_are_no_documents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text, part in (
        ("a.json", '{"budget": 3,}', ":1:14: not a JSON document"),
        ("a.json", '{"budget": 3, "budget": 4}', ": key 'budget' appears more than once"),
        ("a.json", "", ":1:1: not a JSON document"),
        ("a.yaml", "budget: 3\n gpus: {}\n", ":2:"),
        ("a.yaml", "budget: [3\n", ":2:1: "),
        ("a.yaml", "", ": expected one document, found 0"),
    ):
        if name.endswith("yaml") and not gs.io.reads_yaml():
            continue
        asked = tmp_path / name
        asked.write_text(text)
        (problem,) = problems_of(asked, capsys)
        assert problem.startswith(f"{asked}{part}"), problem
        plan = tmp_path / "request.json"
        plan.write_text(json.dumps(request()))
        (problem,) = problems_of(plan, capsys, "--replan-from", str(asked))
        assert problem.startswith(f"{asked}{part}"), problem


def test_plans_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked, plan = tmp_path / "request.json", tmp_path / "plan.json"
    asked.write_text(json.dumps(request()))
    for document, part in (
        ({"format": "gpusched.serving-sweep", "version": 1, "plans": []}, '/format: expected "gpusched.serving-plan", found "'),
        ({"version": 3, "replicas": []}, "/version: expected an integer from 1 to 2, found 3"),
        ({}, "field 'replicas' is missing"),
        ({"replicas": {}}, "/replicas: expected an array, found an object"),
        ({"replicas": [{"model": "m", "count": 2**31 - 1, "stages": []}] * 2}, "/replicas: count of all together: 4294967294"),
    ):
        plan.write_text(json.dumps(document))
        (problem,) = problems_of(asked, capsys, "--replan-from", str(plan))
        assert problem.startswith(f"{plan}: {part}"), problem


def test_sweep_of_budgets() -> None:
    needs_solver()
    plans = serving.sweep_budgets(request(), [6, 0.1, 3])
    assert list(plans) == [0.1, 3, 6] and plans[0.1].status == "infeasible" and plans[0.1].makespan is None
    assert plans[3].makespan > plans[6].makespan and plans[6].cost <= 6
    assert plans[6].makespan == pytest.approx(serving.plan_serving(request()).makespan, rel=2e-3)
    assert plans[6].cost_per_request == pytest.approx(plans[6].cost * plans[6].makespan / 3600 / 1000)
    single = serving.sweep_budgets(request(), (3.0, 6.0), composition="homogeneous")
    assert all(single[budget].makespan is not None for budget in (3, 6))
    for budgets, message in (([], "budgets: none"), ([3, 3], "budgets[1] 3"), ([-1], "budgets[0] -1"),
                             (["3"], "budgets[0] '3'"), (3, "budgets 3")):  # fmt: skip
        with pytest.raises(gs.InvalidInput, match=naming(message)):
            serving.sweep_budgets(request(), budgets)
    with pytest.raises(TypeError, match="deadline"):
        serving.sweep_budgets(request(), [3], deadline=3)
    with pytest.raises(gs.InvalidInput) as caught:
        serving.sweep_budgets({**request(), "budget": -1}, ["x"], routing="any")
    assert len(caught.value.problems) == 3


def test_budgets_on_the_console(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    needs_solver()
    asked, out = tmp_path / "request.json", tmp_path / "sweep.json"
    asked.write_text(json.dumps(request()))
    assert cli.main(["plan-serving", str(asked), "--budgets", "6,0.1,3", "-o", str(out)]) == 0
    lines = capsys.readouterr().out.splitlines()
    document = json.loads(out.read_text())
    schemas = {name: json.loads((SCHEMAS / f"gpusched.serving-{name}.v2.schema.json").read_text()) for name in ("plan", "sweep")}
    registry: Registry[Any] = Registry().with_resource(schemas["plan"]["$id"], Resource.from_contents(schemas["plan"]))
    sweep = Draft202012Validator(schemas["sweep"], registry=registry)
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
        (["--budgets", "3,-1"], "budgets[1]: -1; expected a finite number of at least 0"),
    ):
        assert cli.main(["plan-serving", str(asked), *options]) == 2
        assert message in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["plan-serving", str(asked), "--budgets", "3,x"])
    assert mentions(capsys.readouterr().err, "'3,x'")
