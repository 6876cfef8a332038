# SPDX-License-Identifier: Apache-2.0
"""Plans from measurements: throughputs, latencies at loads, and unmeasured deployments."""

from __future__ import annotations

from typing import Any

import pytest
from gpusched import serving
from messages import mention, mentions
from rate_requests import SHAPES, request, row
from schemas import validator

pytestmark = pytest.mark.usefixtures("solver")


def test_measurements_win_and_calibrate() -> None:
    # Without measurements, estimates are all there is.
    free = serving.plan_serving(request(), ttft_p90_s=2.0)
    assert {s for r in free.replicas for s in r["source"].values()} == {"estimated"}
    assert free.calibration["factors"] == []
    # H100 was measured at half of what is estimated, for one kind on one deployment.
    model, h100 = serving.language_model("Llama-3-70B"), serving.gpu_type("H100")
    deployment = next(d for d in serving.enumerate_deployments(model, [h100], [8]) if d.name == "H100 1x4")
    estimate = serving.estimate_throughput(model, [h100], deployment, *SHAPES["chat"]).requests_per_s
    asked = request(measured=[row("H100 1x4", "chat", estimate / 2)])
    known = serving.calibrate(asked)
    factors = {f["gpu"]: f for f in known["factors"]}
    assert factors["H100"]["factor"] == pytest.approx(0.5) and factors["H100"]["rows"] == 1
    # Nothing of the other types was measured: their factor is borrowed, so that optimism does not win.
    assert factors["L40S"]["factor"] == pytest.approx(0.5) and factors["L40S"]["rows"] == 0
    assert known["residuals"][0]["measured"] == estimate / 2
    assert known["residuals"][0]["estimated"] == pytest.approx(estimate)
    only_h100 = {**asked, "gpus": {"H100": {"available": 32, "price": 3.0}}}
    plan = serving.plan_serving(only_h100, rate={"chat": 3 * estimate / 2}, utilization=1.0)
    # No unmeasured deployment is credited with more per GPU than the measured one: it is chosen.
    (group,) = plan.replicas
    assert (group["deployment"], group["count"]) == ("H100 1x4", 3)
    assert group["source"] == {"chat": "measured", "code": "calibrated"}
    only_h100["measured"] = []
    two = serving.plan_serving(only_h100, rate={"chat": 3 * estimate / 2}, utilization=1.0)
    assert two.cost < plan.cost


def test_measured_only_plans_with_nothing_else() -> None:
    rows = [row("H100 1x4", "chat", 9.0), row("A100-80GB 1x4", "chat", 4.0)]
    options: dict[str, Any] = {"measured_only": True, "utilization": 1.0}
    plan = serving.plan_serving(request(measured=rows), rate={"chat": 17.0}, **options)
    assert {r["deployment"] for r in plan.replicas} <= {"H100 1x4", "A100-80GB 1x4"}
    # By hand: per $ 9 / 12 and 4 / 7.2: two H100 groups.
    assert plan.cost == pytest.approx(24) and plan.cost_bound == pytest.approx(24)
    none = serving.plan_serving(request(measured=rows), rate={"code": 1.0}, measured_only=True)
    assert none.status == "infeasible"
    assert mention(none.binding, ["workload 'code' of 'Llama-3-70B': no deployment measured"])


def test_measured_latencies_at_loads() -> None:
    # Within 0.5 s up to 4 requests/s, 0.8 s at 6: a target of 0.65 s is kept up to 5.
    rows = [
        row("H100 1x4", "chat", r, ttft_s=t, tpot_s=0.03) for r, t in ((2.0, 0.3), (4.0, 0.5), (6.0, 0.8))
    ]
    asked = request(measured=rows)
    plan = serving.plan_serving(asked, rate={"chat": 9.9}, measured_only=True, ttft_p90_s=0.65)
    (group,) = plan.replicas
    assert group["count"] == 2 and group["within_targets"]["chat"] == pytest.approx(5.0)
    assert group["latency_source"]["chat"] == "measured" == plan.latencies[0]["ttft_source"]
    # What is called measured is the measurement at the load of 4.95 requests/s, not a simulation of an
    # estimate.
    assert plan.latencies[0]["ttft_p90_s"] == pytest.approx(0.5 + 0.95 / 2 * 0.3)
    more = serving.plan_serving(asked, rate={"chat": 10.5}, measured_only=True, ttft_p90_s=0.65)
    assert more.replicas[0]["count"] == 3
    # What no measured load keeps cannot be promised.
    none = serving.plan_serving(asked, rate={"chat": 1.0}, measured_only=True, ttft_p90_s=0.2)
    told = "'chat' of 'Llama-3-70B': ttft_p90_s of 0.2 s is less 0.3 s, (H100 1x4 at 2 requests/s)"
    assert none.makespan is None and mention(none.binding, [told])
    residual = serving.calibrate(asked)["residuals"][0]
    assert residual["ttft_s"] == 0.8 and residual["ttft_idle_s"] > 0 and residual["tpot_s"] == 0.03


def test_light_measured_loads_are_reported() -> None:
    """A row with a latency is the most that its deployment is believed to serve, also where it was measured
    at a light load.
    """
    kinds = {"chat": {"input": 1000, "output": 300, "rate": 10.0}}
    gpus = {"H100": {"available": 256, "price": 3.0}}
    asked = request(gpus=gpus, models={"Llama-3-70B": {"workloads": kinds}})

    def message(*rows: dict[str, Any], **options: Any) -> str:
        options = {"ttft_p90_s": 0.5, **options}
        return serving.plan_serving({**asked, "measured": list(rows)}, **options).message

    light, full = row("H100 1x4", "chat", 1.0, ttft_s=0.15), row("H100 1x4", "chat", 7.0)
    estimate = serving.calibrate({**asked, "measured": [light]})["residuals"][0]["estimated"]
    assert estimate > 7
    of_h100, of_chat = "'H100 1x4' counts as", "requests/s of 'chat' of 'Llama-3-70B',"
    most = f"{of_h100} serving at most 1 {of_chat} {estimate:g} are estimated:"
    assert mentions(message(light), most)
    assert "counts" not in message(full)
    assert "counts" not in message({**light, "requests_per_s": 0.6 * estimate})
    assert mentions(message(light, full), f"{of_h100} keeping ttft_p90_s up to 1 {of_chat} serves 7:")
    # The target is missed at the highest load of the rows, or the rows say nothing about it.
    assert "counts" not in message(light, row("H100 1x4", "chat", 3.0, ttft_s=0.7), full)
    assert "counts" not in message(light, full, ttft_p90_s=None, tpot_p90_s=0.5)
    slow = message({**full, "ttft_s": 3.0})
    assert mentions(slow, f"{of_h100} missing ttft_p90_s at any load, at 7 {of_chat}")
    # Without targets, for a changed plan, and for a batch.
    assert mentions(message(light, ttft_p90_s=None), most)
    assert mentions(serving.replan({**asked, "measured": [light]}, []).plan.message, most)
    del kinds["chat"]["rate"]
    kinds["chat"]["requests"] = 100
    batch = {**asked, "budget": 30.0, "measured": [light]}
    assert mentions(serving.plan_serving(batch).message, most)
    assert mentions(serving.replan(batch, []).plan.message, most)


def percentiles(kind: dict[str, Any], latency: str) -> list[float | None]:
    return [kind[f"{latency}_p{percent}_s"] for percent in (50, 90, 99)]


def test_each_latency_has_its_own_source() -> None:
    # Slower than any simulation of such a replica: a p99 of the simulation beside it would be below the
    # measured p90.
    slow = [row("H100 1x4", "chat", r, ttft_s=t) for r, t in ((2.0, 3.0), (6.0, 5.0))]
    asked = request(gpus={"H100": {"available": 8, "price": 3.0}}, measured=slow)
    options: dict[str, Any] = {"rate": {"chat": 3.0}, "measured_only": True}
    plan = serving.plan_serving(asked, ttft_p90_s=4.0, tpot_p90_s=0.5, **options)
    (kind,) = plan.latencies
    assert kind["ttft_source"] == "measured" and percentiles(kind, "ttft") == [None, pytest.approx(3.5), None]
    # No row has TPOT: it is simulated beside the measured TTFT, and says so.
    assert kind["tpot_source"] == "calibrated" and kind["met"]
    simulated = percentiles(kind, "tpot")
    assert simulated == sorted(simulated) and 0 < simulated[0] <= simulated[2] < 0.5  # type: ignore[type-var]
    assert plan.replicas[0]["latency_source"]["chat"] == "calibrated"
    # 4 requests/s are within the target by the measurement; it counts, whatever the row lacks.
    assert plan.replicas[0]["within_targets"]["chat"] == pytest.approx(4.0)
    # Two rows of one latency each say as much as rows of both.
    both = [*slow, row("H100 1x4", "chat", 3.0, tpot_s=0.05), row("H100 1x4", "chat", 5.0, tpot_s=0.09)]
    plan = serving.plan_serving({**asked, "measured": both}, ttft_p90_s=4.0, tpot_p90_s=0.06, **options)
    assert plan.replicas[0]["within_targets"]["chat"] == pytest.approx(3.5)
    (kind,) = plan.latencies
    assert kind["ttft_source"] == kind["tpot_source"] == "measured"
    assert percentiles(kind, "tpot") == [None, 0.05, None]
    # The measured percentile does not stand for another one.
    plan = serving.plan_serving({**asked, "measured": both}, tpot_p99_s=0.06, **options)
    (kind,) = plan.latencies
    assert (kind["ttft_source"], kind["tpot_source"]) == ("calibrated", "measured")
    assert None not in percentiles(kind, "ttft")
    validator("serving-plan.v2").validate(serving.plan_to_dict(plan))


def test_requests_for_one_token_have_no_time_per_further_token() -> None:
    asked = request()
    asked["models"]["Llama-3-70B"]["workloads"] = {"rank": {"input": 800, "output": 1, "rate": 5.0}}
    plan = serving.plan_serving(asked, ttft_p90_s=1.0, tpot_p90_s=0.05)
    assert percentiles(plan.latencies[0], "tpot") == [None] * 3 and plan.latencies[0]["met"]


def test_residuals_leave_a_deployment_out() -> None:
    model, h100 = serving.language_model("Llama-3-70B"), serving.gpu_type("H100")
    found = {d.name: d for d in serving.enumerate_deployments(model, [h100], [8])}
    each, rows = {}, []
    for name, factor in (("H100 1x4", 0.5), ("H100 1x8", 0.8)):
        made = serving.estimate_throughput(model, [h100], found[name], *SHAPES["chat"])
        each[name] = made.requests_per_s
        rows.append(row(name, "chat", factor * made.requests_per_s))
    for residual, factor in zip(serving.calibrate(request(measured=rows))["residuals"], (0.8, 0.5)):
        assert residual["calibrated"] == pytest.approx(factor * each[residual["deployment"]])


def test_a_larger_deployment_may_serve_more_kinds() -> None:
    rows = [row("H100 1x2", "code", 0.0), row("H100 1x2", "chat", 2.0)]
    gpus = {"H100": {"available": 32, "price": 3.0}}
    plan = serving.plan_serving(request(gpus=gpus, measured=rows), rate={"code": 1.0})
    assert plan.makespan is not None and all(r["deployment"] != "H100 1x2" for r in plan.replicas)


def stages(asked: dict[str, Any], *rates: float, **options: Any) -> set[int]:
    """The numbers of stages of all replicas that are planned for these rates of chats."""
    plans = [serving.plan_serving(asked, rate={"chat": rate}, **options) for rate in rates]
    assert all(plan.makespan is not None for plan in plans)
    return {len(group["stages"]) for plan in plans for group in plan.replicas}


def test_unmeasured_pipelines_are_not_preferred() -> None:
    rows = [row("H100 1x4", "chat", 9.0), row("H100 1x8", "chat", 20.0)]
    asked = request(gpus={"H100": {"available": 32, "price": 3.0}}, measured=rows)
    assert stages(asked, 1.0, 3.0, 30.0) == {1}
    # On request, and if a pipeline was measured, they are considered.
    assert max(stages(asked, 1.0, 3.0, 30.0, unmeasured_pipelines=True)) > 1
    asked["measured"] = [*rows, row("H100 2x2", "chat", 9.5)]
    assert max(stages(asked, 1.0, 3.0, 30.0)) > 1


def test_pipelines_without_any_measurement() -> None:
    rates = (0.5, 2.0, 5.0, 30.0)
    # A group of any of these types holds the model: estimates alone do not cut it into stages, three H100 for
    # 5 requests/s among them.
    assert stages(request(), *rates) == {1}
    assert max(stages(request(), *rates, unmeasured_pipelines=True)) > 1
    # Eight T4 do not hold it, and no group of a machine holds prompts of 300,000 tokens.
    assert min(stages(request(gpus={"T4": {"available": 3200, "price": 0.3}}), *rates)) > 1
    long = request(gpus={"A100-80GB": {"available": 64, "price": 1.8}})
    long["models"]["Llama-3-70B"]["workloads"]["code"]["input"] = 1_500_000
    plan = serving.plan_serving(long, rate={"chat": 0.0, "code": 1e-4})
    assert plan.makespan is not None and len(plan.replicas[0]["stages"]) > 1
    # With too few GPUs for a group, the message suggests pipelines.
    few = request(gpus={"H100": {"available": 1, "price": 3.0}, "L40S": {"available": 3, "price": 1.1}})
    refused = serving.plan_serving(few, rate={"chat": 0.5})
    assert mentions(refused.binding, "unmeasured_pipelines: plan for 5.2 $/h")
    assert serving.plan_serving(few, rate={"chat": 0.5}, unmeasured_pipelines=True).cost == pytest.approx(5.2)
    # A running deployment stays if it is the best, measured or not.
    plan = serving.plan_serving(request(), rate={"chat": 5.0}, unmeasured_pipelines=True)
    changed = serving.replan(request(), plan, rate={"chat": 5.0})
    assert (changed.starts, changed.stops) == (0, 0) and len(changed.plan.replicas[0]["stages"]) > 1
