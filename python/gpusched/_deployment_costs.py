# SPDX-License-Identifier: Apache-2.0
"""Requests per dollar, and costs of latencies, for each GPU type and deployment."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._checks import MAX_SEED, as_dict, as_list, as_options, integer, number
from ._core import did_you_mean
from ._core import serving as core
from ._drawing import draw_deployment_costs, draw_latency_costs
from ._views.tables import Kind, Row, Table, format_table
from .errors import InvalidInput, repr_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS: dict[str, Kind] = {
    **dict.fromkeys(("model", "gpu", "deployment"), "text"),
    "gpus": "whole",
    "price": "number",
    "workload": "text",
    **dict.fromkeys(("requests_per_s", "requests_per_dollar"), "number"),
}
SECONDS = 3600


def keywords_of(function: Callable[..., Any]) -> list[str]:
    return [p.name for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]


class DeploymentCosts(Table):
    """One row per deployment and kind of requests: its throughput, requests per $, and the cost of latency
    percentiles.

    `price` is the deployment's price in $/h, and `requests_per_dollar` = 3600 `requests_per_s` / `price`.
    `dollars_p90` is the 90th percentile of the latency in hours, times `price`.
    """

    def best(self) -> DeploymentCosts:
        """For each GPU type and kind of requests, the first deployment with the most requests per $."""
        found: dict[tuple[str, str, str], int] = {}
        for at, row in enumerate(self):
            key = (row.model, row.gpu, row.workload)
            if key not in found or row.requests_per_dollar > self[found[key]].requests_per_dollar:
                found[key] = at
        return self._part(found.values())

    def of(self, **values: str) -> DeploymentCosts:
        """The rows with these values, such as `gpu="H100"` or `workload="chat"`."""
        for name in values:
            if name not in self.columns:
                near = did_you_mean(name, list(self.columns))
                raise InvalidInput(f"{name}: unknown column; expected one of {', '.join(self.columns)}{near}")

        def matches(row: Row) -> bool:
            return all(row[name] == value for name, value in values.items())

        return self._part(at for at, row in enumerate(self) if matches(row))

    def __str__(self) -> str:
        cells = [[f"{v:.4g}" if isinstance(v, float) else str(v) for v in row] for row in self]
        return format_table(self.columns, cells)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draws requests per $; see `gpusched.plotting.plot_deployment_costs`."""
        return draw_deployment_costs(self, ax)

    def plot_latencies(self, ax: Axes | None = None) -> Axes:
        """Draws costs of latency percentiles; see `gpusched.plotting.plot_latency_costs`."""
        return draw_latency_costs(self, ax)


def deployment_costs(
    request: Mapping[str, Any],
    percentiles: Sequence[int] = (),
    *,
    utilization: float = 0.7,
    simulated_requests: int = 2000,
    deployments: Mapping[str, Any] | None = None,
    estimate: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> DeploymentCosts:
    """Computes requests per $ and costs of latencies for every deployment of one replica on one GPU type.

    This is the benchmark of arXiv 2502.00722, section 3 (Figures 3, 4, 11, 12 and 13), with estimated
    throughputs. Requests per $ do not depend on the number of replicas. Latencies are simulated for each kind
    of requests alone; requests arrive at the rate `utilization` times the replica's throughput.

    `request`: as for `plan_serving`; its budget and `measured` are ignored. `available` limits the GPUs of a
    replica.
    `percentiles`: latency percentiles, 1 to 100; each adds a column `dollars_pN`. Nothing is simulated if it
    is empty.
    `utilization`: above 0, up to 1. `simulated_requests`, `seed`: for each simulation.
    `deployments`, `estimate`: options of `plan_serving`; `max_types` is ignored.

    Raises InvalidInput for malformed requests and options.
    """
    listed = enumerate(as_list("deployment_costs", "percentiles", percentiles, "integers from 1 to 100"))
    percents = list(dict.fromkeys(integer(f"percentiles[{at}]", percent, 1, 100) for at, percent in listed))
    part = number("utilization", utilization, 0, 1)
    if part == 0:
        raise InvalidInput(f"utilization: {repr_text(utilization)}; expected a number above 0, up to 1")
    requests = integer("simulated_requests", simulated_requests, 1, 10**7)
    start = integer("seed", seed, 0, MAX_SEED)
    searched = [name for name in keywords_of(core.enumerate_deployments) if name != "memory_fraction"]
    options = {**as_options("deployment_costs", "deployments", deployments, searched), "max_types": 1}
    estimates = as_options("deployment_costs", "estimate", estimate, keywords_of(core.estimate_throughput))
    options.update({name: value for name, value in estimates.items() if name == "memory_fraction"})
    whole = core.request_to_dict({"budget": 1.0, **as_dict("deployment_costs", "request", request)})
    rows = []
    for model_name, model_fields in whole["models"].items():
        size = {**model_fields}
        workloads = size.pop("workloads")
        model = core.language_model("Llama-3-8B", **size)
        for gpu_name, offer in whole["gpus"].items():
            fields = {name: value for name, value in {**OMITTED, **offer}.items() if name in GPU_FIELDS}
            gpu = core.gpu_type("H100", **fields)
            if not gpu.price:
                key = gpu_name.replace("~", "~0").replace("/", "~1")
                raise InvalidInput(f"request: /gpus/{key}/price: expected a price above 0, found 0")
            for deployment in core.enumerate_deployments(model, [gpu], [offer["available"]], **options):
                gpus = sum(stage.degree for stage in deployment.stages)
                name = f"{gpu_name} {deployment.name.split()[-1]}"
                for kind, shape in workloads.items():
                    for name_of_field in ("lengths", "prefix_hits"):
                        if name_of_field in shape:
                            raise InvalidInput(
                                f"request: workload {kind!r}: {name_of_field} is not supported by "
                                "deployment_costs; expected input and output alone"
                            )
                    tokens = shape["input"], shape["output"]
                    served = core.estimate_throughput(model, [gpu], deployment, *tokens, **estimates)
                    rate, price = served.requests_per_s, gpus * gpu.price
                    row: tuple[Any, ...] = (
                        model_name,
                        gpu_name,
                        name,
                        gpus,
                        price,
                        kind,
                        rate,
                        SECONDS * rate / price,
                    )
                    if percents:
                        alone = one_replica(whole, model_name, gpu_name, name, kind, gpus, price, rate)
                        plan = core.plan_serving(alone, measured_only=True)
                        latency = core.simulate_latency(
                            alone,
                            plan,
                            rate=part * rate,
                            requests=requests,
                            seed=start,
                            estimate=estimates,
                        )
                        row += tuple(latency.percentile(percent) / SECONDS * price for percent in percents)
                    rows.append(row)
    dollars: dict[str, Kind] = dict.fromkeys((f"dollars_p{percent}" for percent in percents), "number")
    return DeploymentCosts({**COLUMNS, **dollars}, rows)


# With the values that requests omit.
OMITTED = {"fp8_tflops": 0.0, "fp4_tflops": 0.0, "family": ""}
GPU_FIELDS = (
    "tflops",
    "bandwidth_gb_s",
    "memory_gb",
    "link_gb_s",
    "network_gb_s",
    "per_machine",
    "price",
    "source",
    *OMITTED,
)


def one_replica(
    whole: Mapping[str, Any],
    model: str,
    gpu: str,
    deployment: str,
    kind: str,
    gpus: int,
    price: float,
    rate: float,
) -> dict[str, Any]:
    """A request that only this replica can serve, with its estimated throughput as a measurement."""
    shape = {name: whole["models"][model]["workloads"][kind][name] for name in ("input", "output")}
    fields = {name: value for name, value in whole["models"][model].items() if name != "workloads"}
    return {
        "budget": price * (1 + 1e-9),
        "gpus": {gpu: {**{n: v for n, v in whole["gpus"][gpu].items() if n in GPU_FIELDS}, "available": gpus}},
        "models": {model: {**fields, "workloads": {kind: {**shape, "requests": 1000}}}},
        "measured": [{"model": model, "deployment": deployment, "workload": kind, "requests_per_s": rate}],
    }


DeploymentCosts.__module__ = deployment_costs.__module__ = "gpusched.serving"
