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
from rate_requests import request, row, validator

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
        ({"rate": {"chatt": 1.0}}, "rate 'chatt' chat code"),
        ({"rate": {"chat": -2.0}}, "rate['chat'] -2 0"),
        ({"deadline": 3.0}, "deadline"),
        ({"composition": "uniform"}, "composition routing uniform_tp"),
        ({"ttft_p90_s": -1.0}, "ttft_p90_s -1"),
        ({"utilization": 2.0}, "utilization 2 0.01 1"),
    ):
        with pytest.raises(gs.InvalidInput) as caught:
            serving.plan_serving(request(), **options)  # type: ignore[arg-type]
        assert mentions(caught.value.problems, told), caught.value.problems
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
    assert mentions(capsys.readouterr().err, "--rate --budgets")


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
    assert mention(caught.value.problems, ["rates[1] 0", "rates[2] -1"])
    with pytest.raises(gs.InvalidInput, match=naming("targets /1/ttft_p90_s 0 -1")):
        serving.curve(document, rates=[5], targets=[{"ttft_p90_s": 1}, {"ttft_p90_s": -1}])


def test_the_console_blames_the_rate_for_the_rate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "request.json"
    file.write_text(json.dumps(request()))
    for text, told in (("0", "--rate 0"), ("chat=0", "--rate 0"), ("chat=-2", "--rate['chat'] -2 0")):
        assert cli.main(["plan-serving", str(file), "--rate", text]) == 2
        assert mention(capsys.readouterr().err.splitlines(), [told])
    for words, told in (
        (["plan-serving", str(file), "--rate", "chat=10,chat=5"], "--rate 'chat=10,chat=5' 'chat'"),
        (["serving-curve", str(file), "--targets", "ttft_p90=1,ttft_p90=2"], "--targets 'ttft_p90=1,ttft_p90=2' 'ttft_p90'"),
        (["plan-serving", str(file), "--rate", "chat:10"], "--rate 'chat:10'"),
    ):
        with pytest.raises(SystemExit):
            cli.main(words)
        assert mentions(capsys.readouterr().err, told)
    assert cli.main(["serving-curve", str(file), "--rates", "4,0"]) == 2
    assert mentions(capsys.readouterr().err, "gpusched --rates[1] 0")
