# SPDX-License-Identifier: Apache-2.0
"""What a dollar buys in each deployment: rows by hand, latencies of idle replicas, figures, errors."""

from __future__ import annotations

from typing import Any

import pytest
from gpusched import serving
from messages import refuses

SHAPES = {"prompts": (2455, 18), "chat": (496, 510)}
KINDS = {kind: {"input": i, "output": o, "requests": 1} for kind, (i, o) in SHAPES.items()}
REQUEST: dict[str, Any] = {
    "gpus": {"H100": {"available": 4, "price": 3.0}, "mine": {"type": "L40S", "available": 4, "price": 1.1}},
    "models": {"Llama-3-70B": {"workloads": KINDS}},
}


def test_rows_are_estimates_over_prices() -> None:
    costs = serving.deployment_costs(REQUEST)
    model = serving.language_model("Llama-3-70B")
    rows = {(row.deployment, row.workload): row for row in costs}
    for name, base, price in (("H100", "H100", 3.0), ("mine", "L40S", 1.1)):
        gpu = serving.gpu_type(base, price=price)
        deployments = serving.enumerate_deployments(model, [gpu], [4])
        assert len(deployments) > 1
        for deployment in deployments:
            gpus = sum(stage.degree for stage in deployment.stages)
            for kind, (tokens_in, tokens_out) in SHAPES.items():
                row = rows.pop((deployment.name.replace(base, name), kind))
                found = serving.estimate_throughput(model, [gpu], deployment, tokens_in, tokens_out)
                assert (row.model, row.gpu, row.gpus) == ("Llama-3-70B", name, gpus)
                assert row.price == pytest.approx(gpus * price)
                assert row.requests_per_s == found.requests_per_s
                per_dollar = 3600 * row.requests_per_s / row.price
                assert row.requests_per_dollar == pytest.approx(per_dollar)
    assert not rows


def test_every_option_of_enumeration_and_estimates_is_known() -> None:
    more = serving.deployment_costs(REQUEST, deployments={"mixed_degrees": True, "max_gpus": 6})
    less = serving.deployment_costs(REQUEST, deployments={"max_gpus": 6})
    assert {row.deployment for row in less} < {row.deployment for row in more}


def test_best_of_each_type() -> None:
    costs = serving.deployment_costs(REQUEST)
    best = costs.best()
    wanted = [(gpu, kind) for gpu in ("H100", "mine") for kind in SHAPES]
    assert [(row.gpu, row.workload) for row in best] == wanted
    for row in best:
        alike = costs.of(gpu=row.gpu, workload=row.workload)
        assert row.requests_per_dollar == max(r.requests_per_dollar for r in alike)
    assert len({row.deployment for row in best.of(gpu="H100")}) == 2


def test_latencies_of_idle_replicas_are_their_times() -> None:
    """With arrivals far apart every request has its prompt and its steps to itself."""
    costs = serving.deployment_costs(REQUEST, (10, 50), utilization=1e-4, simulated_requests=200)
    model = serving.language_model("Llama-3-70B")
    gpu = serving.gpu_type("H100", price=3.0)
    for deployment in serving.enumerate_deployments(model, [gpu], [4]):
        for kind, (tokens_in, tokens_out) in SHAPES.items():
            alone = serving.estimate_throughput(model, [gpu], deployment, tokens_in, tokens_out, max_batch=1)
            seconds = alone.first_token_s + (tokens_out - 1) * alone.step_s
            row = costs.of(deployment=deployment.name, workload=kind)[0]
            wanted = pytest.approx(seconds / 3600 * row.price, rel=0.02)
            assert row.dollars_p50 == wanted, (deployment, kind)
            assert row.dollars_p10 <= row.dollars_p50


def test_the_same_seed_gives_the_same_percentiles() -> None:
    one, same, other = (
        serving.deployment_costs(REQUEST, (90,), simulated_requests=300, seed=seed) for seed in (1, 1, 2)
    )
    assert one == same and one != other


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: serving.deployment_costs(REQUEST, (0,)), "percentiles[0]: 0; expected 1 to 100"),
        (lambda: serving.deployment_costs(REQUEST, utilization=0), "utilization: 0; above 0"),
        (lambda: serving.deployment_costs({**REQUEST, "gpus": {"L4": {"available": 1}}}), "price"),
        (lambda: serving.deployment_costs(REQUEST).of(kind="chat"), "kind: unknown column;"),
    ],
)
def test_mistakes(call: Any, told: str) -> None:
    with refuses(told):
        call()


def test_figures() -> None:
    pytest.importorskip("matplotlib").use("Agg")
    from gpusched import plotting

    costs = serving.deployment_costs(REQUEST, (50, 90), simulated_requests=100)
    types = plotting.plot_deployment_costs(costs.best())
    assert [text.get_text() for text in types.get_legend().get_texts()] == ["H100", "mine"]
    heights = sorted(bar.get_height() for bar in types.patches)
    assert heights == sorted(row.requests_per_dollar for row in costs.best())
    of = costs.of(gpu="H100")
    deployments = of.plot()
    assert len(deployments.patches) == len(of)
    lines = plotting.plot_latency_costs(of.of(workload="chat")).lines
    assert [list(line.get_ydata()) for line in lines] == [
        [row.dollars_p50, row.dollars_p90] for row in of.of(workload="chat")
    ]
    for wrong, told in (
        (costs.best(), "rows of 2 kinds of requests"),
        (serving.deployment_costs(REQUEST).of(workload="chat"), "no percentiles"),
    ):
        with refuses(told):
            plotting.plot_latency_costs(wrong)
    with refuses("rows of 0 models"):
        plotting.plot_deployment_costs(costs.of(model="x"))
