# SPDX-License-Identifier: Apache-2.0
"""Requests with rates as documents and on the console, and what is said of mistakes in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from gpusched import cli, serving
from messages import mention, mentions, problems_in, refuses
from rate_requests import request, row
from schemas import validator

pytestmark = pytest.mark.usefixtures("solver")


def measured(deployment: str, workload: str = "chat", **more: float) -> dict[str, Any]:
    return request(measured=[row(deployment, workload, 1.0, **more)])


def with_chat(**fields: Any) -> dict[str, Any]:
    asked = request()
    asked["models"]["Llama-3-70B"]["workloads"]["chat"] |= fields
    return asked


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (measured("H1OO 1x4"), "measured/0/deployment: 'H1OO 1x4'; 'TYPE SxD', did you mean 'H100 1x4'"),
        (measured("H100 1x16"), "measured/0/deployment: 'H100 1x16'; machine with a link; one has 8 H100"),
        (measured("H100 1x3"), "measured/0/deployment: 'H100 1x3'; divide the 64 query heads"),
        (measured("H100 1x4", ttft=0.5), "measured/0/ttft: unknown field; did you mean 'ttft_s'"),
        (measured("H100 1x4", ttft_s=0.0), "measured/0/ttft_s: above 0, found 0"),
        (with_chat(targets={"tpot_p50_s": 0}), "workloads/chat/targets/tpot_p50_s: above 0, found 0"),
    ],
)
def test_mistakes_in_requests(asked: dict[str, Any], message: str) -> None:
    assert mention(problems_in(serving.plan_serving, asked), [f"request: {message}"])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"top_k": 2}, "top_k: 2; expected 0 without experts"),
        ({"shared_experts": 1}, "shared_experts: 1; expected 0 without experts"),
        ({"window": 128}, "window: 128; expected 0 without window_layers"),
        ({"window_layers": 4}, "window"),
        ({"q_lora_rank": 64}, "q_lora_rank: 64; expected 0 without kv_lora_rank"),
        ({"rope_size": 64}, "rope_size: 64; expected 0 without kv_lora_rank"),
        ({"linear_size": 64}, "linear_size: 64; expected 0 without linear_layers"),
        ({"index_heads": 4}, "index_heads: 4; expected 0 without index_top_k"),
    ],
)
def test_fields_of_a_model_without_their_part(fields: dict[str, Any], message: str) -> None:
    asked = request()
    asked["models"]["Llama-3-70B"] |= fields
    assert mentions(problems_in(serving.plan_serving, asked), message)
    assert mentions(problems_in(lambda: serving.language_model("Llama-3-70B", **fields)), message)


def test_families_of_gpus_are_names_in_any_case() -> None:
    model = serving.language_model("Llama-3-70B")
    gpus = [serving.gpu_type("H100", family=family) for family in ("hopper", "Hopper", "")]
    (deployment,) = serving.enumerate_deployments(model, gpus[:1], [4], max_stages=1, degrees=[4])
    first, same, other = (serving.estimate_throughput(model, [g], deployment, 500, 100) for g in gpus)
    assert first == same != other
    with refuses("family Hoper volta turing ampere ada hopper blackwell cdna3"):
        serving.gpu_type("H100", family="Hoper")


def test_mistakes_in_calls() -> None:
    for options, told in (
        ({"deadline": 3.0}, "deadline: not with rates"),
        ({"composition": "uniform"}, "composition, routing, uniform_tp:"),
        ({"ttft_p90_s": -1.0}, "ttft_p90_s: -1; expected"),
        ({"utilization": 2.0}, "utilization: 2; expected 0.01 to 1"),
    ):
        with refuses(told):
            serving.plan_serving(request(), **options)  # type: ignore[arg-type]
    batch = request(budget=30)
    for kind in batch["models"]["Llama-3-70B"]["workloads"].values():
        kind["requests"] = kind.pop("rate")
    with refuses("targets: rates"):
        serving.plan_serving(batch, ttft_p90_s=1.0)
    # A batch on whole machines: the paper's question with the rentals of practice.
    loose, whole = serving.plan_serving(batch), serving.plan_serving(batch, machines=True)
    assert whole.makespan >= loose.makespan * (1 - 2e-3) and whole.rentals[0]["per_rental"] == 8


def test_the_console(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out, again, points = (
        tmp_path / name for name in ("request.json", "plan.json", "again.json", "curve.json")
    )
    file.write_text(json.dumps(request()))
    words = ["--rate", "chat=8,code=2", "--ttft-p90", "1.5", "--tpot-p90", "0.1", "--machines"]
    assert cli.main(["plan-serving", str(file), *words, "--price-ranges", "-o", str(out)]) == 0
    printed = capsys.readouterr().out
    for part in ("kept", "rent ", "stays the cheapest while H100 costs", "no plan costs less"):
        assert part in printed
    validator("serving-plan.v2").validate(json.loads(out.read_text()))
    validator("serving-request.v2").validate(request())
    assert cli.main(["plan-serving", str(file), *words, "--replan-from", str(out), "-o", str(again)]) == 0
    assert "starts 0 replicas and stops 0" in capsys.readouterr().out
    curve = ["serving-curve", str(file), "--rates", "4,8", "--targets", "ttft_p90=2"]
    assert cli.main([*curve, "-o", str(points)]) == 0
    assert "cost_bound" in capsys.readouterr().out
    validator("serving-curve.v1").validate(json.loads(points.read_text()))
    assert cli.main(["serving-curve", str(file), "--rates", "4", "-o", str(tmp_path / "curve.svg")]) == 0
    assert (tmp_path / "curve.svg").read_text().startswith("<?xml")
    capsys.readouterr()
    assert cli.main(["plan-serving", str(file), "--rate", "5", "--tpot-p90", "0.0001"]) == 1
    assert mentions(capsys.readouterr().out, "tpot_p90_s of 0.0001 s is less than idle")
    assert cli.main(["plan-serving", str(file), "--budgets", "3", "--rate", "5"]) == 2
    assert mentions(capsys.readouterr().err, "--rate: not with --budgets")


def test_rates_of_the_call_alone() -> None:
    document = request()
    kinds = document["models"]["Llama-3-70B"]["workloads"]
    for kind in kinds.values():
        del kind["rate"]
    assert serving.plan_serving(document, rate={"chat": 5.0}).rate == pytest.approx(5)
    del kinds["code"]
    plan = serving.plan_serving(document, rate=5.0)
    assert plan.rate == pytest.approx(5)
    assert len(serving.simulate_latency(document, plan, rate=5.0, requests=100).kinds) == 1
    assert mention(
        problems_in(serving.curve, document, rates=[5, 0, -1]),
        ["rates[1]: 0; above 0", "rates[2]: -1; above 0"],
    )
    with refuses("targets: /1/ttft_p90_s: above 0, found -1"):
        serving.curve(document, rates=[5], targets=[{"ttft_p90_s": 1}, {"ttft_p90_s": -1}])


def test_the_console_blames_the_rate_for_the_rate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "request.json"
    file.write_text(json.dumps(request()))
    assert cli.main(["plan-serving", str(file), "--rate", "chat=-2"]) == 2
    assert mentions(capsys.readouterr().err, "gpusched: --rate['chat']: -2; at least 0")
    for words, told in (
        (
            ["plan-serving", str(file), "--rate", "chat=10,chat=5"],
            "argument --rate: 'chat=10,chat=5': 'chat' appears twice",
        ),
        (
            ["serving-curve", str(file), "--targets", "ttft_p90=1,ttft_p90=2"],
            "argument --targets: 'ttft_p90=1,ttft_p90=2': 'ttft_p90'",
        ),
        (["plan-serving", str(file), "--rate", "chat:10"], "argument --rate: 'chat:10' is no rate;"),
    ):
        with pytest.raises(SystemExit):
            cli.main(words)
        assert mentions(capsys.readouterr().err, told)
    assert cli.main(["serving-curve", str(file), "--rates", "4,0"]) == 2
    assert mentions(capsys.readouterr().err, "gpusched: --rates[1]: 0; above 0")


def test_the_time_limit_ends_the_search_for_deployments() -> None:
    gpus = {f"G{i}": {"type": "H100", "available": 16, "price": 3 + i / 10} for i in range(12)}
    chat = {"input": 496, "output": 510}
    for requests, options in (({"requests": 1000}, {}), ({"rate": 5}, {"unmeasured_pipelines": True})):
        models = {"Llama-3-70B": {"workloads": {"chat": chat | requests}}}
        asked = {"gpus": gpus, "models": models, "budget": 90}
        plan = serving.plan_serving(asked, time_limit=1e-6, **options)  # type: ignore[arg-type]
        assert (plan.status, plan.replicas, plan.optimal) == ("time_limit", [], False)
        assert plan.deployments < 2000


def test_limits_are_not_searched_among_too_many_deployments() -> None:
    gpus = {f"G{i}": {"type": "H100", "available": 16, "price": 3} for i in range(40)}
    models = {"Llama-3-70B": {"workloads": {"chat": {"input": 496, "output": 510, "requests": 1000}}}}
    plan = serving.plan_serving({"gpus": gpus, "models": models, "budget": 1})
    assert plan.status == "infeasible" and mentions(plan.binding, "deployments: more than 50000 max_types")
