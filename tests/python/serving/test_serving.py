# SPDX-License-Identifier: Apache-2.0
"""The serving planner in Python and on the console."""

from __future__ import annotations

import copy
import json
import math
import pickle
from pathlib import Path
from typing import Any

import gpusched as gs
import pytest
from gpusched import cli, serving
from messages import mention, mentions, naming, refuses
from schemas import validator
from solvers import needs_solver

MEASURED = {"prefill": [(1000, 0.5)], "decode": [(1, 0.1)]}
TABLE = {"model": "Llama-3-70B", "gpu": "H100", "degree": 4, **MEASURED}


KINDS = {
    "long": {"input": 2455, "output": 18, "requests": 700},
    "chat": {"input": 496, "output": 510, "requests": 300},
}


def request(budget: float = 15, **models: Any) -> dict[str, Any]:
    return {
        "budget": budget,
        "gpus": {
            "H100": {"available": 8},
            "A40": {"available": 12, "price": 0.6},
            "mine": {"type": "L40S", "available": 4, "price": 1.1, "network_gb_s": 12.5},
        },
        "models": models or {"Llama-3-8B": {"workloads": copy.deepcopy(KINDS)}},
    }


def test_catalogue_deployments_and_estimates() -> None:
    h100 = serving.gpu_type("H100")
    assert (h100.tflops, h100.memory_gb, h100.price) == (989, 80, None)
    assert serving.gpu_type("4090").price == 0.53
    assert serving.gpu_type("H100", price=3.5).price == 3.5
    assert copy.deepcopy(h100) == h100 == pickle.loads(pickle.dumps(h100))
    model = serving.language_model("Llama-3-70B")
    assert model.parameters == 70553706496
    found = serving.enumerate_deployments(model, [h100], [4], max_stages=2)
    assert [d.name for d in found] == ["H100 2x1", "H100 1x2", "H100 2x2", "H100 1x4"]
    fast = serving.estimate_throughput(model, [h100], found[3], 1000, 100)
    slow = serving.estimate_throughput(model, [h100], found[3], 1000, 100, error="p90")
    assert fast.requests_per_s > slow.requests_per_s > 0
    measured = serving.estimate_throughput(model, [h100], found[3], 1000, 1, profiles=[TABLE])
    assert measured.requests_per_s == pytest.approx(1 / 40, rel=1e-3)
    with refuses("profiles: /0/prefill/0: expected a row of size, seconds"):
        wrong = {**TABLE, "prefill": [(1000,)]}
        serving.estimate_throughput(model, [h100], found[3], 1000, 1, profiles=[wrong])
    with pytest.raises(gs.InvalidInput):
        serving.estimate_throughput(model, [h100], found[3], 1000, 100, network=2)
    assert serving.layer_seconds(model, h100, 4, 1, 1000, 1) > 0
    with refuses("degree 9 1 8"):
        serving.layer_seconds(model, h100, 9, 1, 0, 0)


def test_plans_carry_the_errors_of_their_estimates() -> None:
    needs_solver()
    asked = {
        "gpus": {"H100": {"available": 64, "price": 3.0}, "A40": {"available": 0, "price": 0.6}},
        "models": {"Llama-3-70B": {"workloads": {"chat": {"input": 500, "output": 250, "rate": 8}}}},
    }
    plan = serving.plan_serving(asked)
    (errors,) = plan.errors
    assert (errors["model"], errors["gpu"], errors["cell"]) == ("Llama-3-70B", "H100", "dense hopper vllm")
    for output in ("ttft", "tpot", "requests_per_s"):
        assert 0.5 < errors[f"{output}_low"] < 1 < errors[f"{output}_high"] < 3
    assert mentions([errors["means"]], f"{errors['n']} comparable measurements")
    document = serving.plan_to_dict(plan)
    assert document["errors"] == plan.errors and document["cost_high"] == plan.cost_high
    validator("serving-plan.v2").validate(document)
    # A plan for the high end costs about as much as these deployments at the low end of their throughput.
    high = serving.plan_serving(asked, estimate={"error": "p90"})
    low = serving.plan_serving(asked, estimate={"error": "p10"})
    assert plan.cost_high is not None
    assert low.cost <= plan.cost <= plan.cost_high and plan.cost <= high.cost
    assert low.cost_high is None and high.cost_high is None  # their cost has an error
    assert serving.plan_serving(asked, estimate={"engine": "trtllm"}).errors[0]["cell"] == "dense hopper"
    with refuses('engine vllm sglang trtllm "tgi"'):
        serving.plan_serving(asked, estimate={"engine": "tgi"})
    # With targets, the cost at the high end is that of a plan of its own.
    assert serving.plan_serving(asked, tpot_p90_s=0.05).cost_high is None
    # A measured deployment has no error of an estimate.
    row = {"model": "Llama-3-70B", "deployment": "H100 1x8", "workload": "chat", "requests_per_s": 9.5}
    assert serving.plan_serving({**asked, "measured": [row]}, measured_only=True).errors == []


def test_a_target_that_only_short_times_meet_is_not_called_infeasible() -> None:
    needs_solver()
    asked = {
        "gpus": {"H100": {"available": 64, "price": 3.0}},
        "models": {"Llama-3-70B": {"workloads": {"chat": {"input": 500, "output": 250, "rate": 8}}}},
    }
    model, h100 = serving.language_model("Llama-3-70B"), serving.gpu_type("H100")
    found = serving.enumerate_deployments(model, [h100], [8], max_stages=1)
    steps = [serving.estimate_throughput(model, [h100], d, 500, 250, max_batch=1).step_s for d in found]
    band = serving.plan_serving(asked).errors[0]
    between, below = 0.5 * (1 + band["tpot_low"]) * min(steps), 0.9 * band["tpot_low"] * min(steps)
    plan = serving.plan_serving(asked, tpot_p90_s=between)
    assert plan.status == "failed" and not plan.replicas
    assert mentions([plan.message], "error bands") and mentions(plan.binding, "tpot_p90_s less than quickest")
    assert serving.plan_serving(asked, tpot_p90_s=between, estimate={"error": "p10"}).replicas
    assert serving.plan_serving(asked, tpot_p90_s=below).status == "infeasible"


def test_plan_ablations_and_deadline() -> None:
    needs_solver()
    plan = serving.plan_serving(request())
    assert plan.status == "optimal" and plan.optimal and plan.makespan is not None
    assert plan.cost <= 15 and sum(r["cost"] for r in plan.replicas) == pytest.approx(plan.cost)
    assert plan.cost_per_request == pytest.approx(plan.cost * plan.makespan / 3600 / 1000)
    for workload in ("long", "chat"):
        assert sum(r["share"].get(workload, 0) for r in plan.replicas) == pytest.approx(1)
    busy = [
        (r["share"].get("long", 0) * 700 / r["requests_per_s"]["long"]
         + r["share"].get("chat", 0) * 300 / r["requests_per_s"]["chat"]) / r["count"]
        for r in plan.replicas
    ]  # fmt: skip
    assert max(busy) == pytest.approx(plan.makespan, rel=1e-6)
    for options in ({"composition": "uniform"}, {"uniform_tp": True}, {"routing": "round_robin"}):
        other = serving.plan_serving(request(), **options)
        assert other.makespan is not None and other.makespan >= plan.makespan * (1 - 2e-3)
    cheap = serving.plan_serving(request(), deadline=2 * plan.makespan)
    assert cheap.makespan is not None and cheap.makespan <= 2 * plan.makespan * (1 + 1e-6)
    assert cheap.cost < plan.cost
    none = serving.plan_serving(request(budget=0.1))
    assert none.status == "infeasible" and none.makespan is None and none.replicas == []


def test_plans_pickle() -> None:
    needs_solver()
    plan = serving.plan_serving(request())
    again = pickle.loads(pickle.dumps(plan))
    assert serving.plan_to_dict(again) == serving.plan_to_dict(plan)
    assert serving.simulate_latency(request(), again) == serving.simulate_latency(request(), plan)
    changed = serving.replan(request(6), again)
    back = pickle.loads(pickle.dumps(changed))
    assert serving.plan_to_dict(back.plan, back) == serving.plan_to_dict(changed.plan, changed)
    none = pickle.loads(pickle.dumps(serving.plan_serving(request(0.1))))
    assert none.status == "infeasible" and none.makespan is None
    state = plan.__getstate__()
    for i in range(len(state)):
        with refuses("pickled state of ServingPlan:"):
            serving.ServingPlan.__new__(serving.ServingPlan).__setstate__((*state[:i], object(), *state[i + 1 :]))


def test_profiles_from_csv(tmp_path: Path) -> None:
    prefill, decode = tmp_path / "prefill.csv", tmp_path / "decode.csv"
    prefill.write_text("tokens,ms\n0,0\n1000,500\n")
    decode.write_text("1,100\n")
    profile = serving.read_layer_profile(prefill, decode, "Llama-3-70B", "H100", degree=4)
    assert profile == TABLE
    model, h100 = serving.language_model("Llama-3-70B"), serving.gpu_type("H100")
    found = next(d for d in serving.enumerate_deployments(model, [h100], [4]) if d.name == "H100 1x4")
    rate = serving.estimate_throughput(model, [h100], found, 1000, 1, profiles=[profile]).requests_per_s
    assert rate == pytest.approx(1 / 40, rel=1e-3)
    assert serving.plan_serving(request(), estimate={"profiles": [profile]}).makespan
    decode.write_text("1,-1\n")
    with refuses("decode.csv:1: time: >= 0, found '-1'"):
        serving.read_layer_profile(prefill, decode, "m", "g")
    with pytest.raises(gs.BackendError, match="none.csv: cannot be opened"):
        serving.read_layer_profile(prefill, tmp_path / "none.csv", "m", "g")


def test_replan() -> None:
    needs_solver()
    plan = serving.plan_serving(request())
    same = serving.replan(request(), plan)
    assert (same.starts, same.stops) == (0, 0)
    changed = request()
    changed["models"]["Llama-3-8B"]["workloads"]["long"]["requests"] = 100
    changed["models"]["Llama-3-8B"]["workloads"]["chat"]["requests"] = 900
    changed["gpus"]["A40"]["available"] = 3
    free = serving.replan(changed, plan)
    kept = serving.replan(changed, plan.replicas, max_starts=0)
    assert kept.starts == 0 and kept.makespan_kept == pytest.approx(kept.plan.makespan)
    assert free.makespan_free is not None and kept.plan.makespan is not None
    assert free.makespan_free <= kept.plan.makespan * (1 + 2e-3)


def test_a_timed_out_replanning_knows_the_plan_without_starts() -> None:
    pytest.importorskip("highspy")
    import time

    from gpusched._solvers import highs

    limits = []

    def slow(model: Any, options: dict[str, Any]) -> dict[str, Any]:
        found = highs(model, {**options, "time_limit": 10.0})
        limits.append(math.inf if options["time_limit"] is None else options["time_limit"])
        time.sleep(0.25 if len(limits) == 1 else 0.0)
        return found if limits[-1] > 0 else {"status": "time_limit"}

    plan = serving.plan_serving(request())
    same = serving.replan(request(), plan, solver=slow, time_limit=0.2)
    assert same.makespan_kept == pytest.approx(plan.makespan) and same.starts == 0


def test_plans_name_their_solver_and_cbc_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    if "cbc" not in gs.milp.available_solvers():
        pytest.skip("no CBC")
    plan = serving.plan_serving(request(), solver="cbc", time_limit=5)
    fewer = request()
    fewer["gpus"]["H100"]["available"] = 1
    changed = serving.replan(fewer, plan, solver="cbc", slack=0.05, time_limit=5)
    assert plan.solver == changed.plan.solver == "cbc"
    assert capfd.readouterr() == ("", "")  # of the process, not of Python alone


def test_latency() -> None:
    needs_solver()
    plan = serving.plan_serving(request())
    burst = serving.simulate_latency(request(), plan, requests=5000)
    assert burst.makespan / 5 == pytest.approx(plan.makespan, rel=0.25)
    assert burst.percentile(100) == pytest.approx(burst.makespan) and len(burst.latency) == 5000
    half = serving.simulate_latency(request(), plan, rate=plan.requests_per_s / 2, seed=3)
    assert half == serving.simulate_latency(request(), plan, rate=plan.requests_per_s / 2, seed=3)
    assert 0 < half.percentile(50) <= half.percentile(99) < burst.percentile(99)
    for options in ({"requests": 0}, {"rate": 1e-300, "requests": 3}):
        with pytest.raises(gs.InvalidInput):
            serving.simulate_latency(request(), plan, **options)


def test_latency_of_documents_and_of_plans_of_ones_own() -> None:
    needs_solver()
    plan = serving.plan_serving(request())
    options: dict[str, Any] = {"rate": plan.requests_per_s / 2, "requests": 2000}
    expected = serving.simulate_latency(request(), plan, **options)
    document = json.loads(json.dumps(serving.plan_to_dict(plan)))
    before = copy.deepcopy(document)
    assert serving.simulate_latency(request(), document, **options) == expected and document == before
    assert serving.simulate_latency(request(), plan.replicas, **options) == expected
    # By name: stages and throughputs are those that the planner would find.
    served = [{name: r[name] for name in ("model", "deployment", "count", "share")} for r in plan.replicas]
    assert serving.simulate_latency(request(), served, **options) == expected
    # One's own: a replica of one type for all, with a throughput that was measured elsewhere or in the
    # request.
    kinds = {"long": 1.0, "chat": 1.0}
    mine = {"model": "Llama-3-8B", "deployment": "H100 1x1", "count": 2, "share": kinds}
    alone = serving.simulate_latency(request(), [mine], **options)
    slower = serving.simulate_latency(request(), [{**mine, "requests_per_s": {"chat": 0.5}}], **options)
    assert slower.kinds[1].percentile(50) > alone.kinds[1].percentile(50)
    row = {"model": "Llama-3-8B", "deployment": "H100 1x1", "workload": "chat", "requests_per_s": 0.5}
    also = {**row, "workload": "long", "requests_per_s": 50.0}
    measured = serving.simulate_latency({**request(), "measured": [row, also]}, [mine], **options)
    told = [
        {**mine, "requests_per_s": {"chat": 0.5, "long": 50.0}, "source": dict.fromkeys(kinds, "measured")}
    ]
    assert measured == serving.simulate_latency(request(), told, **options)
    for wrong, problem in (
        ("H100", 'plan: expected a serving plan or a list of replicas, found "H100"'),
        ({**document, "version": 3}, "plan: /version: from 1 to 2, found 3"),
        ([{**mine, "count": -1}], "plan: /0/count: from 0 to 2147483647, found -1"),
        ([{**mine, "share": {"chat": 0.5, "long": 1.0}}], "shares of workload 'chat': 0.5; 1"),
    ):
        with refuses(problem):
            serving.simulate_latency(request(), wrong, **options)  # type: ignore[arg-type]


def test_a_batch_without_a_plan_has_a_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    needs_solver()
    batch = {"chat": {"input": 496, "output": 510, "requests": 300}}
    asked: dict[str, Any] = {
        "budget": 1,
        "gpus": {"H100": {"available": 8, "price": 3.0}, "A40": {"available": 8, "price": 0.55}},
        "models": {"Llama-3-70B": {"workloads": batch}},
    }
    (told,) = serving.plan_serving(asked).binding
    assert told.startswith("budget: 1 $/h; ") and told.endswith(" $/h would do")
    enough = float(told.split("; ")[1].split()[0])
    assert serving.plan_serving({**asked, "budget": enough}).makespan is not None
    assert serving.plan_serving({**asked, "budget": 0.99 * enough}).makespan is None
    # The same of a plan that is changed, on the console, and with few GPUs.
    assert serving.replan(asked, []).plan.binding == [told]
    file = tmp_path / "request.json"
    file.write_text(json.dumps(asked))
    assert cli.main(["plan-serving", str(file)]) == 1
    assert capsys.readouterr().out.splitlines() == ["no plan: infeasible", f"  {told}"]
    few = {**asked, "budget": 30, "gpus": {"H100": {"available": 1, "price": 3.0}}}
    assert mention(serving.plan_serving(few).binding, ["GPU type 'H100': 1 available; 2"])
    # Within a deadline: more money, or more time.
    poor = {**asked, "budget": 12, "gpus": {"H100": {"available": 64, "price": 3.0}}}
    budget, deadline = serving.plan_serving(poor, deadline=10.0).binding
    assert budget.startswith("budget: 12 $/h; ") and deadline.startswith("deadline: 10 s; ")
    enough, least = (float(told.split("; ")[1].split()[0]) for told in (budget, deadline))
    for more, within in (({"budget": enough}, 10.0), ({}, least)):
        rich = {**poor, **more}
        assert serving.plan_serving(rich, deadline=within).makespan is not None
        rich["budget"] *= 0.99
        assert serving.plan_serving(rich, deadline=0.99 * within).makespan is None
    # If the running plan may not be changed enough.
    plenty = {**asked, "budget": 30}
    assert mention(serving.replan(plenty, [], max_starts=0).plan.binding, ["max_starts: 0; a plan"])


def test_console_with_schemas(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    needs_solver()
    asked, out, again = (str(tmp_path / name) for name in ("request.json", "plan.json", "again.json"))
    document = {"format": "gpusched.serving-request", "version": 1, **request()}
    Path(asked).write_text(json.dumps(document))
    validator("serving-request.v1").validate(document)
    assert not validator("serving-request.v1").is_valid({**document, "budget": -1})
    solver = ["--solver", "cbc"] if gs.milp.available_solvers() else []
    assert cli.main(["plan-serving", asked, "-o", out, *solver]) == 0
    printed = capsys.readouterr().out
    assert "proven best" in printed and "$/h" in printed
    costs = [replicas["cost"] for replicas in json.loads(Path(out).read_text())["replicas"]]
    assert all(f" {cost:.2f} " in printed for cost in costs)
    validator("serving-plan.v2").validate(json.loads(Path(out).read_text()))
    assert cli.main(["plan-serving", asked, "--replan-from", out, "-o", again]) == 0
    assert "starts 0 replicas and stops 0" in capsys.readouterr().out
    validator("serving-plan.v2").validate(json.loads(Path(again).read_text()))
    ignored = ["--deadline", "100", "--composition", "uniform"]
    ignored += ["--routing", "round_robin", "--uniform-tp"]
    assert cli.main(["plan-serving", asked, "--replan-from", out, *ignored]) == 2
    said = capsys.readouterr().err
    assert "not with --replan-from" in said and all(word in said for word in ignored[::2])
    assert cli.main(["plan-serving", asked, "--max-starts", "1"]) == 2
    Path(asked).write_text(json.dumps({**document, "budget": 0.1}))
    assert cli.main(["plan-serving", asked]) == 1
    assert "no plan: infeasible" in capsys.readouterr().out


def test_names_that_yaml_takes_for_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not gs.io.reads_yaml():
        pytest.skip("this build reads no YAML")
    needs_solver()
    asked = tmp_path / "request.yaml"
    asked.write_text(
        "budget: 3\ngpus: {4090: {available: 4}}\n"
        "models: {Llama-3-8B: {workloads: {1: {input: 496, output: 510, requests: 300}}}}\n"
    )
    assert cli.main(["plan-serving", str(asked)]) == 0
    assert "4090" in capsys.readouterr().out
    asked.write_text("budget: 3\ngpus: {4090: {available: 4}, '4090': {available: 4}}\nmodels: {}\n")
    assert cli.main(["plan-serving", str(asked)]) == 2
    assert mentions(capsys.readouterr().err, "key '4090' appears more than once")


def test_replanning_proves_its_claims() -> None:
    needs_solver()
    before = request(10)
    before["gpus"] = {"H100": {"available": 0}, "A40": {"available": 4, "price": 0.6}}
    plan = serving.plan_serving(before)
    after = copy.deepcopy(before)
    after["gpus"]["H100"]["available"] = 4
    free = serving.replan(after, plan)
    kept = serving.replan(after, plan, slack=10)
    assert free.plan.optimal and kept.starts == 0
    assert kept.plan.makespan > 1.1 * free.plan.makespan
    assert not kept.plan.optimal and mentions(kept.plan.message, "fewest starts within slack")
    assert kept.plan.bound == pytest.approx(free.plan.bound, rel=2e-3)


def test_the_fraction_of_the_memory_belongs_to_the_estimate() -> None:
    with pytest.raises(
        TypeError, match=naming("unexpected keyword argument 'memory_fraction'; it is a field of 'estimate'")
    ):
        serving.simulate_latency(request(), [], memory_fraction=0.3)  # type: ignore[call-arg]
    h100, model = serving.gpu_type("H100"), serving.language_model("Llama-3-70B")
    found = serving.enumerate_deployments(model, [h100], [4], memory_fraction=0.5)
    assert [d.name for d in found] == ["H100 4x1", "H100 2x2", "H100 1x4"]
    needs_solver()
    whole, half = (serving.plan_serving(request(), estimate={"memory_fraction": part}) for part in (0.9, 0.5))
    assert half.makespan > whole.makespan
    chat = [{"model": "Llama-3-8B", "deployment": "A40 1x1", "count": 1, "share": {"long": 1, "chat": 1}}]
    wide, narrow = (
        serving.simulate_latency(request(), chat, requests=500, estimate={"memory_fraction": part})
        for part in (0.9, 0.5)
    )
    assert narrow.percentile(90) > wide.percentile(90)


def test_plots() -> None:
    needs_solver()
    pytest.importorskip("matplotlib").use("Agg")
    from gpusched import plotting

    plans = {budget: serving.plan_serving(request(budget)) for budget in (0.1, 3, 6)}
    bars = plotting.plot_composition(plans)
    heights = sum(patch.get_height() for patch in bars.patches)
    assert heights == pytest.approx(plans[3].cost + plans[6].cost)
    shares = plotting.plot_assignment(plans[6])
    drawn = shares.images[0].get_array()
    assert list(drawn.sum(axis=0)) == pytest.approx([1, 1])
    line = plotting.plot_makespan(plans, label="ours").lines[0]
    assert list(line.get_ydata()) == [plans[3].makespan, plans[6].makespan]
    for bad in (lambda: plotting.plot_assignment(plans[0.1]), lambda: plotting.plot_composition({})):
        with pytest.raises(gs.InvalidInput):
            bad()


def test_odd_requests() -> None:
    needs_solver()
    for options in ({"deployments": {"degrees": []}}, {"deployments": {"degrees": []}, "uniform_tp": True}):
        assert serving.plan_serving(request(), **options).status == "infeasible"
    endless = {"input": 2_000_000_000, "output": 2_000_000_000, "requests": 1}
    model = {"type": "Llama-3-8B", "workloads": {"w": endless}}
    assert serving.plan_serving(request(m=model)).status == "infeasible"
    many = request(1e9)
    many["gpus"]["H100"]["available"] = 10**9
    plan = serving.plan_serving(many, mip_gap=1e-3, time_limit=20)
    assert plan.makespan is not None and plan.bound == pytest.approx(plan.makespan, rel=2e-2)
    model["workloads"]["w"] = {"input": 9, "output": 9, "requests": 1e300}
    assert serving.plan_serving(request(m=model)).status == "optimal"


@pytest.mark.parametrize("call", ["plan_serving", "sweep_budgets", "replan"])
def test_mistakes_in_request_and_options_are_reported_together(call: str) -> None:
    more = {"plan_serving": [], "sweep_budgets": [["y"]], "replan": [[]]}[call]
    with pytest.raises(gs.InvalidInput) as caught:
        wrong = {"deployments": {"degrees": "q"}, "estimate": {"max_batch": 0}}
        getattr(serving, call)({"budget": "x"}, *more, threads="two", max_deployments=-1, **wrong)
    text = "\n".join(caught.value.problems)
    for words in (
        'request /budget "x"', "field 'gpus' is missing", "field 'models' is missing", "threads 'two'",
        "max_deployments -1", 'deployments /degrees "q"', "estimate: /max_batch: expected",
    ):  # fmt: skip
        assert mentions(text, words)
    assert mentions(text, "budgets[0] 'y'") == (call == "sweep_budgets")
