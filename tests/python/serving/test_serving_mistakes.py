# SPDX-License-Identifier: Apache-2.0
"""Requests with rates as documents and on the console, and what is said of mistakes in them."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import gpusched as gs
import pytest
from gpusched import cli, serving
from messages import mention, mentions, naming
from rate_requests import SHAPES, request, row, validator

pytestmark = pytest.mark.usefixtures("solver")

MODEL = ("models", "Llama-3-70B")
CHAT = (*MODEL, "workloads", "chat")
OF_CHAT = "/models/Llama-3-70B/workloads/chat"
MISTAKES: list[tuple[tuple[str | int, ...], Any, str]] = [
    (("measured",), [row("H1OO 1x4", "chat", 1.0)], "/measured/0/deployment: 'H1OO 1x4'; expected 'TYPE SxD', S stages of tensor-parallel degree D, of the types H100, A100-80GB, L40S; did you mean 'H100 1x4'"),  # noqa: E501
    (("measured",), [row("H100-1x4", "chat", 1.0)], "/measured/0/deployment: 'H100-1x4'; expected 'TYPE SxD'"),
    (("measured",), [row("H100 1x16", "chat", 1.0)], "/measured/0/deployment: 'H100 1x16'; expected groups that fit into a machine with a link; one has 8 H100"),  # noqa: E501
    (("measured",), [row("H100 1x3", "chat", 1.0)], "/measured/0/deployment: 'H100 1x3'; expected degrees that divide the 64 query heads"),
    (("measured",), [row("H100 81x1", "chat", 1.0)], "/measured/0/deployment: 'H100 81x1'; expected at most 80 stages"),
    (("measured",), [row("H100 1x4", "chta", 1.0)], "/measured/0: there is no workload 'chta' of a model 'Llama-3-70B'; did you mean 'chat'?"),  # noqa: E501
    (("measured",), [{**row("H100 1x4", "chat", 1.0), "model": "Llama-3-70b"}], "/measured/0: there is no model 'Llama-3-70b'; did you mean 'Llama-3-70B'?"),  # noqa: E501
    (("measured",), [row("H100 1x4", "chat", 1.0, ttft=0.5)], "/measured/0/ttft: unknown field; expected one of model, deployment, workload, requests_per_s, ttft_s, tpot_s, or a name that begins with x-; did you mean 'ttft_s'"),  # noqa: E501
    (("measured",), [row("H100 1x4", "chat", 1.0, ttft_s=0.0)], "/measured/0/ttft_s: expected a finite number above 0, found 0"),
    (("measured",), [row("H100 1x4", "chat", 1.0)] * 2, "/measured/1: appears twice for 'chat' of 'Llama-3-70B'"),
    (("gpus", "H1OO"), {"available": 8}, "/gpus/H1OO: expected a type described in full (tflops, bandwidth_gb_s, ...) or one of V100, "),
    (("gpus", "H100", "machine"), 3, "/gpus/H100/machine: unknown field; expected one of "),
    (("gpus", "H100", "available"), 3, "/gpus/H100/machines: not with available, which counts GPUs"),
    (("gpus", "H100", "machines"), -1, "/gpus/H100/machines: expected an integer from 0 to 2147483647, found -1"),
    (("gpus", "H100", "machines"), 10**9, "/gpus/H100/machines: expected at most 125000000 machines of 8 GPUs, found 1000000000"),
    (("gpus", "H100", "spot_price"), 1.0, "/gpus/H100: spot_available: 0; expected at least 1, with a spot_price"),
    (("gpus", "H100", "spot_available"), 8, "/gpus/H100: field 'spot_price' is missing"),
    (("gpus", "H100", "minimum"), -8, "/gpus/H100/minimum: expected an integer from 0 to 2147483647, found -8"),
    ((*CHAT, "requests"), 100, f"{OF_CHAT}/requests: 100; expected a rate, as other workloads have"),
    ((*CHAT, "input"), 496.5, f"{OF_CHAT}/input: expected an integer, found 496.5"),
    ((*MODEL, "workloads"), [{"name": "chat"}], "/models/Llama-3-70B/workloads: expected an object by name, found an array\n"),
    (("models",), {}, "request.json: /models: no workloads; expected some with rates, or with requests and a budget\n"),
    (("gpus",), ["H100", "L40S"], "/gpus: expected an object by name, found an array"),
    (("gpus", "NVIDIA H100"), {"available": 8}, "/gpus/NVIDIA H100: expected a type described in full (tflops, bandwidth_gb_s, ...) or one of V100, "),  # noqa: E501
    (("gpus", "H200"), {"machines": 1}, "/gpus/H200: field 'price' is missing"),
    (("gpus", "H100", "price"), "$2.99", '/gpus/H100/price: expected a number, found "$2.99"'),
    (("budget",), "30 $/h", '/budget: expected a number, found "30 $/h"'),
    (("targets",), {"ttft_p90_ms": 500}, "/targets/ttft_p90_ms: unknown field; expected one of ttft_p50_s, ttft_p90_s, ttft_p99_s, tpot_p50_s, tpot_p90_s, tpot_p99_s, or a name that begins with x-; did you mean 'ttft_p90_s'"),  # noqa: E501
    (("measured",), [row("4xH100", "chat", 1.0)], "/measured/0/deployment: '4xH100'; expected 'TYPE SxD', S stages of tensor-parallel degree D, of the types H100, "),  # noqa: E501
    ((*CHAT, "rate"), -1, f"{OF_CHAT}/rate: expected a finite number of at least 0, found -1"),
    ((*CHAT, "ratee"), 1, f"{OF_CHAT}/ratee: unknown field; expected one of input, output, requests, rate, targets, or a name that begins with x-; did you mean 'rate'?"),  # noqa: E501
    ((*CHAT, "targets"), {"ttft_p95_s": 1}, f"{OF_CHAT}/targets/ttft_p95_s: unknown field; expected one of ttft_p50_s, ttft_p90_s, ttft_p99_s, tpot_p50_s, tpot_p90_s, tpot_p99_s, or a name that begins with x-; did you mean "),  # noqa: E501
    (("targets",), {"ttft_p90_s": -1}, "request.json: /targets/ttft_p90_s: expected a finite number above 0, found -1\n"),
    ((*CHAT, "targets"), {"tpot_p50_s": 0}, f"{OF_CHAT}/targets/tpot_p50_s: expected a finite number above 0, found 0\n"),
    (("gpus", "H100", "machines"), "4", '/gpus/H100/machines: expected an integer, found "4"'),
    (("targets",), {"ttft_p90_s": "0.5"}, '/targets/ttft_p90_s: expected a number, found "0.5"'),
    (("version",), 1, "is a field of version 2; this document says version 1"),
    (("version",), 3, "/version: expected an integer from 1 to 2, found 3"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "told"), MISTAKES)
def test_plausible_mistakes_in_request_files(
    path: tuple[str | int, ...], value: Any, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = copy.deepcopy(request())
    at: Any = document
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    file = tmp_path / "request.json"
    file.write_text(json.dumps(document))
    assert cli.main(["plan-serving", str(file)]) == 2
    assert told in capsys.readouterr().err


def test_mistakes_in_calls() -> None:
    with pytest.raises(gs.InvalidInput, match=naming("request /gpus GPU")):
        serving.plan_serving(request(gpus={}, measured=[row("H100 1x4", "chat", 1.0)]))
    for options, told in (
        ({"rate": {"chatt": 1.0}}, "rate: 'chatt'; expected one of chat, code; did you mean 'chat'?"),
        ({"rate": -1.0}, "rate: -1; expected a finite number above 0"),
        ({"rate": 0}, "rate: 0; expected a finite number above 0"),
        ({"rate": {"chat": -2.0}}, "rate['chat']: -2; expected a finite number of at least 0"),
        ({"rate": {"chat": 0.0}}, "rate: expected a rate above 0 for some kind of requests"),
        ({"deadline": 3.0}, "deadline: not with rates, which have no end"),
        ({"composition": "uniform"}, "composition, routing, uniform_tp: "),
        ({"ttft_p90_s": -1.0}, "ttft_p90_s: -1; expected"),
        ({"utilization": 2.0}, "utilization: 2; expected 0.01 to 1"),
    ):
        with pytest.raises(gs.InvalidInput) as caught:
            serving.plan_serving(request(), **options)  # type: ignore[arg-type]
        assert any(problem.startswith(told) for problem in caught.value.problems), caught.value.problems
    batch = request(budget=30)
    for kind in batch["models"]["Llama-3-70B"]["workloads"].values():
        kind["requests"] = kind.pop("rate")
    with pytest.raises(gs.InvalidInput, match="targets: need rates"):
        serving.plan_serving(batch, ttft_p90_s=1.0)
    with pytest.raises(gs.InvalidInput, match="field 'budget' is missing"):
        serving.plan_serving({k: v for k, v in batch.items() if k != "budget"})
    # A batch on whole machines: the paper's question with the rentals of practice.
    loose, whole = serving.plan_serving(batch), serving.plan_serving(batch, machines=True)
    assert whole.makespan >= loose.makespan * (1 - 2e-3) and whole.rentals[0]["per_rental"] == 8


def test_the_console(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out, again, points = (tmp_path / name for name in ("request.json", "plan.json", "again.json", "curve.json"))
    file.write_text(json.dumps(request()))
    words = ["--rate", "chat=8,code=2", "--ttft-p90", "1.5", "--tpot-p90", "0.1", "--machines"]
    assert cli.main(["plan-serving", str(file), *words, "--price-ranges", "-o", str(out)]) == 0
    printed = capsys.readouterr().out
    for part in ("layers", "kept", "rent ", "stays the cheapest while H100 costs", "no plan of these deployments costs less"):
        assert part in printed
    validator("serving-plan.v2").validate(json.loads(out.read_text()))
    validator("serving-request.v2").validate(request())
    assert cli.main(["plan-serving", str(file), *words, "--replan-from", str(out), "-o", str(again)]) == 0
    assert "starts 0 replicas and stops 0" in capsys.readouterr().out
    assert cli.main(["serving-curve", str(file), "--rates", "4,8", "--targets", "ttft_p90=2", "-o", str(points)]) == 0
    assert "cost_bound" in capsys.readouterr().out
    validator("serving-curve.v1").validate(json.loads(points.read_text()))
    assert cli.main(["serving-curve", str(file), "--rates", "4", "-o", str(tmp_path / "curve.svg")]) == 0
    assert (tmp_path / "curve.svg").read_text().startswith("<?xml")
    capsys.readouterr()
    assert cli.main(["plan-serving", str(file), "--rate", "5", "--tpot-p90", "0.0001"]) == 1
    assert mentions(capsys.readouterr().out, "idle")
    assert cli.main(["plan-serving", str(file), "--budgets", "3", "--rate", "5"]) == 2
    assert "--rate: not with --budgets" in capsys.readouterr().err


def problems_of(document: dict[str, Any], **options: Any) -> list[str]:
    with pytest.raises(gs.InvalidInput) as caught:
        serving.plan_serving(document, **options)
    return caught.value.problems


def test_requests_that_say_no_rate() -> None:
    """Nobody who asked for rates, however wrong, is told that a batch needs a budget."""
    place = "request: /models/Llama-3-70B/workloads"
    expected = "expected one of input, output, requests, rate, targets, or a name that begins with x-"
    nothing = "request: /models: every rate is 0; expected one above 0 for some workload"

    def each(change: Any) -> dict[str, Any]:
        document = request()
        for kind in document["models"]["Llama-3-70B"]["workloads"].values():
            change(kind)
        return document

    assert problems_of(each(lambda kind: kind.update(rate=0))) == [nothing]
    assert problems_of(each(lambda kind: kind.update(rate=0)), ttft_p90_s=1.0) == [nothing]
    assert problems_of(each(lambda kind: kind.update(rate=-1))) == [
        f"{place}/{name}/rate: expected a finite number of at least 0, found -1" for name in SHAPES
    ]
    assert problems_of(each(lambda kind: kind.update(rate="8"))) == [
        f'{place}/{name}/rate: expected a number, found "8"' for name in SHAPES
    ]
    missing = [f"{place}/{name}: field 'rate' or 'requests' is missing" for name in SHAPES]
    assert problems_of(each(lambda kind: kind.pop("rate"))) == missing
    misspelt = each(lambda kind: kind.update(ratee=kind.pop("rate")))
    unknown = [f"{place}/{name}/ratee: unknown field; {expected}; did you mean 'rate'?" for name in SHAPES]
    assert sorted(problems_of(misspelt)) == sorted(unknown + missing)
    # A batch needs a budget, and has no targets.
    batch = each(lambda kind: kind.update(requests=100, rate=0))
    assert mention(problems_of(batch), ["request 'budget' missing"])
    assert mention(problems_of({**batch, "budget": 30, "targets": {"ttft_p90_s": 1.0}}), ["request /targets"])
    batch["models"]["Llama-3-70B"]["workloads"]["chat"]["targets"] = {"ttft_p90_s": 1.0}
    assert mention(problems_of({**batch, "budget": 30}), [f"{place}/chat/targets rate"])
    # Targets are judged where they stand, also those that every kind replaces.
    own = each(lambda kind: kind.update(targets={"ttft_p90_s": 2.0}))
    assert mention(problems_of({**own, "targets": {"ttft_p90_s": -1.0}}), ["request /targets/ttft_p90_s 0 -1"])
    # A bad rate of the call and a bad request are told together.
    assert problems_of(each(lambda kind: kind.update(input=0)), rate=-1) == [
        "rate: -1; expected a finite number above 0",
        *(f"{place}/{name}/input: expected an integer from 1 to 2147483647, found 0" for name in SHAPES),
    ]


def test_rates_of_the_call_alone() -> None:
    document = request()
    kinds = document["models"]["Llama-3-70B"]["workloads"]
    for kind in kinds.values():
        del kind["rate"]
    assert serving.plan_serving(document, rate={"chat": 5.0}).rate == pytest.approx(5)
    # Shares of a rate of all kinds together are nowhere said, but for one kind.
    with pytest.raises(gs.InvalidInput, match=naming("'rate' 'requests' missing")):
        serving.plan_serving(document, rate=5.0)
    del kinds["code"]
    plan = serving.plan_serving(document, rate=5.0)
    assert plan.rate == pytest.approx(5) and len(serving.simulate_latency(document, plan, rate=5.0, requests=100).kinds) == 1
    with pytest.raises(gs.InvalidInput) as caught:
        serving.curve(document, rates=[5, 0, -1])
    assert caught.value.problems == [f"rates[{i}]: {r}; expected a finite number above 0" for i, r in ((1, 0), (2, -1))]
    with pytest.raises(gs.InvalidInput, match=naming("targets /1/ttft_p90_s 0 -1")):
        serving.curve(document, rates=[5], targets=[{"ttft_p90_s": 1}, {"ttft_p90_s": -1}])


def test_the_console_blames_the_rate_for_the_rate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "request.json"
    file.write_text(json.dumps(request()))
    for text, told in (
        ("0", "--rate: 0; expected a finite number above 0"),
        ("chat=0", "--rate: expected a rate above 0 for some kind of requests"),
        ("chat=-2", "--rate['chat']: -2; expected a finite number of at least 0"),
    ):
        assert cli.main(["plan-serving", str(file), "--rate", text]) == 2
        assert capsys.readouterr().err == f"gpusched: {told}\n"
    for words, told in (
        (["plan-serving", str(file), "--rate", "chat=10,chat=5"], "argument --rate: 'chat=10,chat=5': 'chat' appears twice"),
        (["serving-curve", str(file), "--targets", "ttft_p90=1,ttft_p90=2"], "argument --targets: 'ttft_p90=1,ttft_p90=2': 'ttft_p90' "),
        (["plan-serving", str(file), "--rate", "chat:10"], "argument --rate: 'chat:10' is no rate; write requests/s, like 10, "),
    ):
        with pytest.raises(SystemExit):
            cli.main(words)
        assert told in capsys.readouterr().err
    assert cli.main(["serving-curve", str(file), "--rates", "4,0"]) == 2
    assert mentions(capsys.readouterr().err, "gpusched --rates[1] 0")


def test_curves_want_lists() -> None:
    with pytest.raises(gs.errors.InvalidType, match=naming("rates 5")):
        serving.curve(request(), rates=5)  # type: ignore[arg-type]
    with pytest.raises(gs.errors.InvalidType, match=naming("targets")):
        serving.curve(request(), rates=[5], targets={"ttft_p90_s": 1})  # type: ignore[arg-type]
