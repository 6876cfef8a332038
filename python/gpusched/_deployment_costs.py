"""What a dollar buys on each GPU type and in each deployment."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._core import did_you_mean
from ._core import serving as core
from ._drawing.deployment_costs import draw_deployment_costs, draw_latency_costs
from ._values import MOST_SEED, a_dict, a_list, fields, integer, number
from ._views.tables import Kind, Table, format_table
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
    """A row for each deployment and kind of requests: what it serves, per $, and what each percentile of the latency costs.

    `price` is that of the deployment in $/h; `requests_per_dollar` = 3600 `requests_per_s` / `price`; `dollars_p90` = the 90th percentile
    of the latency in hours times `price`.
    """

    def best(self) -> DeploymentCosts:
        """Of each GPU type the deployment that serves most requests of a kind per $ (the first of equal ones)."""
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
                raise InvalidInput(f"{name}: no column; expected one of {', '.join(self.columns)}{near}")
        return self._part(at for at, row in enumerate(self) if all(row[name] == value for name, value in values.items()))

    def __str__(self) -> str:
        return format_table(self.columns, [[f"{v:.4g}" if isinstance(v, float) else str(v) for v in row] for row in self])

    def plot(self, ax: Axes | None = None) -> Axes:
        """Requests per $; see `gpusched.plotting.plot_deployment_costs`."""
        return draw_deployment_costs(self, ax)

    def plot_latencies(self, ax: Axes | None = None) -> Axes:
        """What percentiles cost; see `gpusched.plotting.plot_latency_costs`."""
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
    """Requests per $ of every deployment of one replica on one GPU type, and what percentiles of the latency cost.

    The benchmark of arXiv 2502.00722, section 3 (Figures 3, 4, 11, 12 and 13), with estimated throughputs; `measured` does not count. More
    replicas serve as many requests per $ as one. Latencies are simulated, each kind of requests alone, with arrivals at `utilization` of
    what the replica serves.

    `request`: as for `plan_serving`, whose budget does not count; `available` says how many GPUs of a type a replica may have.
    `percentiles`: of the latency, 1 to 100; each is a column `dollars_pN`. None: nothing is simulated.
    `utilization`: above 0, up to 1. `simulated_requests`, `seed`: of each simulation.
    `deployments`, `estimate`: options of `plan_serving`, whose `max_types` does not count.

    Raises InvalidInput for malformed requests and options.
    """
    listed = enumerate(a_list("deployment_costs", "percentiles", percentiles, "whole numbers from 1 to 100"))
    percents = list(dict.fromkeys(integer(f"percentiles[{at}]", percent, 1, 100) for at, percent in listed))
    part = number("utilization", utilization, 0, 1)
    if part == 0:
        raise InvalidInput(f"utilization: {repr_text(utilization)}; expected a number above 0, up to 1")
    requests, start = integer("simulated_requests", simulated_requests, 1, 10**7), integer("seed", seed, 0, MOST_SEED)
    searched = [name for name in keywords_of(core.enumerate_deployments) if name != "memory_fraction"]
    options = {**fields("deployment_costs", "deployments", deployments, searched), "max_types": 1}
    estimates = fields("deployment_costs", "estimate", estimate, keywords_of(core.estimate_throughput))
    options.update({name: value for name, value in estimates.items() if name == "memory_fraction"})
    whole = core.request_to_dict({"budget": 1.0, **a_dict("deployment_costs", "request", request)})
    rows = []
    for model_name, model_fields in whole["models"].items():
        size = {**model_fields}
        workloads = size.pop("workloads")
        model = core.language_model("Llama-3-8B", **size)
        for gpu_name, there in whole["gpus"].items():
            gpu = core.gpu_type("H100", **{name: value for name, value in there.items() if name in GPU_FIELDS})
            if not gpu.price:
                key = gpu_name.replace("~", "~0").replace("/", "~1")
                raise InvalidInput(f"request: /gpus/{key}/price: expected a price above 0, found 0")
            for deployment in core.enumerate_deployments(model, [gpu], [there["available"]], **options):
                gpus = sum(stage.degree for stage in deployment.stages)
                name = f"{gpu_name} {deployment.name.split()[-1]}"
                for kind, shape in workloads.items():
                    tokens = shape["input"], shape["output"]
                    served = core.estimate_throughput(model, [gpu], deployment, *tokens, **estimates)
                    rate, price = served.requests_per_s, gpus * gpu.price
                    known: tuple[Any, ...] = (model_name, gpu_name, name, gpus, price, kind, rate, SECONDS * rate / price)
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
                        known += tuple(latency.percentile(percent) / SECONDS * price for percent in percents)
                    rows.append(known)
    return DeploymentCosts({**COLUMNS, **dict.fromkeys((f"dollars_p{percent}" for percent in percents), "number")}, rows)


GPU_FIELDS = ("tflops", "bandwidth_gb_s", "memory_gb", "link_gb_s", "network_gb_s", "per_machine", "price", "source")


def one_replica(
    whole: Mapping[str, Any], model: str, gpu: str, deployment: str, kind: str, gpus: int, price: float, rate: float
) -> dict[str, Any]:
    """A request that this replica alone can serve, at what it is estimated to serve."""
    shape = {name: whole["models"][model]["workloads"][kind][name] for name in ("input", "output")}
    fields = {name: value for name, value in whole["models"][model].items() if name != "workloads"}
    return {
        "budget": price * (1 + 1e-9),
        "gpus": {gpu: {**{name: whole["gpus"][gpu][name] for name in GPU_FIELDS}, "available": gpus}},
        "models": {model: {**fields, "workloads": {kind: {**shape, "requests": 1000}}}},
        "measured": [{"model": model, "deployment": deployment, "workload": kind, "requests_per_s": rate}],
    }


DeploymentCosts.__module__ = deployment_costs.__module__ = "gpusched.serving"
