# Written by python/bindings/generate_stubs.py from the bindings; do not edit.

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from .milp import Model

class GpuType:
    @property
    def name(self) -> str: ...
    @property
    def tflops(self) -> float: ...
    @property
    def bandwidth_gb_s(self) -> float: ...
    @property
    def memory_gb(self) -> float: ...
    @property
    def link_gb_s(self) -> float: ...
    @property
    def network_gb_s(self) -> float: ...
    @property
    def per_machine(self) -> int: ...
    @property
    def price(self) -> float | None: ...
    @property
    def source(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __copy__(self) -> GpuType: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> GpuType: ...

class LanguageModel:
    @property
    def name(self) -> str: ...
    @property
    def layers(self) -> int: ...
    @property
    def hidden(self) -> int: ...
    @property
    def heads(self) -> int: ...
    @property
    def kv_heads(self) -> int: ...
    @property
    def head_size(self) -> int: ...
    @property
    def intermediate(self) -> int: ...
    @property
    def vocabulary(self) -> int: ...
    @property
    def bytes_per_weight(self) -> float: ...
    @property
    def bytes_per_kv(self) -> float: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __copy__(self) -> LanguageModel: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> LanguageModel: ...
    @property
    def parameters(self) -> float: ...

class Stage:
    @property
    def gpu(self) -> int: ...
    @property
    def degree(self) -> int: ...
    @property
    def layers(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __copy__(self) -> Stage: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> Stage: ...

class Deployment:
    @property
    def name(self) -> str: ...
    @property
    def stages(self) -> list[Stage]: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __copy__(self) -> Deployment: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> Deployment: ...

class ThroughputEstimate:
    @property
    def requests_per_s(self) -> float: ...
    @property
    def batch(self) -> float: ...
    @property
    def prefill_s(self) -> float: ...
    @property
    def step_s(self) -> float: ...
    @property
    def first_token_s(self) -> float: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __copy__(self) -> ThroughputEstimate: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> ThroughputEstimate: ...

class ServingPlan:
    @property
    def status(self) -> Literal["optimal", "infeasible", "unbounded", "time_limit", "cancelled", "failed"]: ...
    @property
    def makespan(self) -> float | None: ...
    @property
    def bound(self) -> float | None: ...
    @property
    def cost(self) -> float: ...
    @property
    def requests_per_s(self) -> float: ...
    @property
    def cost_per_request(self) -> float: ...
    @property
    def optimal(self) -> bool: ...
    @property
    def deployments(self) -> int: ...
    @property
    def left_out(self) -> int: ...
    @property
    def solver(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def rented(self) -> dict[str, int]: ...
    @property
    def replicas(self) -> list[dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __copy__(self) -> ServingPlan: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> ServingPlan: ...

class ReplanResult:
    @property
    def plan(self) -> ServingPlan: ...
    @property
    def starts(self) -> int: ...
    @property
    def stops(self) -> int: ...
    @property
    def makespan_kept(self) -> float | None: ...
    @property
    def makespan_free(self) -> float | None: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __copy__(self) -> ReplanResult: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> ReplanResult: ...

class LatencyResult:
    @property
    def latency(self) -> list[float]: ...
    @property
    def makespan(self) -> float: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __copy__(self) -> LatencyResult: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> LatencyResult: ...
    def percentile(self, percent: float) -> float: ...

class ServingMilp(Model):
    @property
    def form(self) -> Literal["copies", "fixed_makespan", "mccormick", "rates"]: ...
    def makespan_of(self, value: float) -> float: ...
    def encode(
        self, replicas: dict[str, int], assignment: dict[str, dict[str, float]]
    ) -> npt.NDArray[np.float64]: ...
    def decode(self, x: Sequence[float]) -> tuple[dict[str, int], dict[str, dict[str, float]]]: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]
    def __copy__(self) -> ServingMilp: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> ServingMilp: ...

class ServingSolution:
    @property
    def status(self) -> Literal["optimal", "infeasible", "unbounded", "time_limit", "cancelled", "failed"]: ...
    @property
    def makespan(self) -> float | None: ...
    @property
    def bound(self) -> float | None: ...
    @property
    def cost(self) -> float: ...
    @property
    def optimal(self) -> bool: ...
    @property
    def solver(self) -> str: ...
    @property
    def solver_calls(self) -> int: ...
    @property
    def message(self) -> str: ...
    @property
    def rented(self) -> dict[str, int]: ...
    @property
    def replicas(self) -> dict[str, int]: ...
    @property
    def assignment(self) -> dict[str, dict[str, float]]: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __copy__(self) -> ServingSolution: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> ServingSolution: ...

def gpu_catalogue() -> list[GpuType]: ...
def paper_gpus() -> list[GpuType]: ...
def paper_gpus_dense() -> list[GpuType]: ...
def gpu_type(name: str, **changes: Any) -> GpuType: ...
def language_model(name: str, **changes: Any) -> LanguageModel: ...
def enumerate_deployments(
    model: LanguageModel,
    gpus: Sequence[GpuType],
    available: Sequence[int],
    *,
    degrees: Sequence[int] = [1, 2, 4, 8],
    max_stages: int = 8,
    max_gpus: int = 16,
    max_types: int = 2,
    memory_fraction: float = 0.9,
    min_tokens: int = 4096,
    disconnected: Sequence[tuple[int, int]] = [],
) -> list[Deployment]: ...
def estimate_throughput(
    model: LanguageModel,
    gpus: Sequence[GpuType],
    deployment: Deployment,
    input: int,
    output: int,
    *,
    efficiency: Mapping[str, Any] | None = None,
    memory_fraction: float = 0.9,
    max_batch: int = 256,
    profiles: Sequence[Mapping[str, Any]] = [],
) -> ThroughputEstimate: ...
def read_layer_profile(
    prefill: str | PathLike[str],
    decode: str | PathLike[str],
    model: str,
    gpu: str,
    degree: int = 1,
    unit_s: float = 0.001,
) -> dict[str, Any]: ...
def layer_seconds(
    model: LanguageModel,
    gpu: GpuType,
    degree: int,
    tokens: float,
    context: float,
    sequences: float,
    *,
    efficiency: Mapping[str, Any] | None = None,
    memory_fraction: float = 0.9,
    max_batch: int = 256,
    profiles: Sequence[Mapping[str, Any]] = [],
) -> float: ...
def plan_serving(
    request: Mapping[str, Any],
    *,
    deployments: Mapping[str, Any] | None = None,
    estimate: Mapping[str, Any] | None = None,
    composition: Literal["optimized", "homogeneous", "uniform"] = "optimized",
    routing: Literal["optimized", "round_robin"] = "optimized",
    uniform_tp: bool = False,
    deadline: float | None = None,
    max_deployments: int = 40,
    method: Literal["milp", "binary_search"] = "milp",
    form: Literal["copies", "fixed_makespan", "mccormick", "rates"] = "rates",
    tolerance: float = 0.001,
    greedy_first: bool = True,
    prune: bool = True,
    warm_start: bool = True,
    time_limit: float | None = None,
    mip_gap: float = 0.0,
    threads: int = 1,
    seed: int = 0,
    presolve: bool = True,
    solver: str | Callable[[Model, dict[str, Any]], Mapping[str, Any]] = "auto",
    progress: bool | Callable[[str, int, int], object] | None = None,
) -> ServingPlan: ...
def sweep_budgets(
    request: Mapping[str, Any],
    budgets: Sequence[float],
    *,
    deployments: Mapping[str, Any] | None = None,
    estimate: Mapping[str, Any] | None = None,
    composition: Literal["optimized", "homogeneous", "uniform"] = "optimized",
    routing: Literal["optimized", "round_robin"] = "optimized",
    uniform_tp: bool = False,
    max_deployments: int = 40,
    method: Literal["milp", "binary_search"] = "milp",
    form: Literal["copies", "fixed_makespan", "mccormick", "rates"] = "rates",
    tolerance: float = 0.001,
    greedy_first: bool = True,
    prune: bool = True,
    warm_start: bool = True,
    time_limit: float | None = None,
    mip_gap: float = 0.0,
    threads: int = 1,
    seed: int = 0,
    presolve: bool = True,
    solver: str | Callable[[Model, dict[str, Any]], Mapping[str, Any]] = "auto",
    progress: bool | Callable[[str, int, int], object] | None = None,
) -> dict[float, ServingPlan]: ...
def replan(
    request: Mapping[str, Any],
    running: ServingPlan | Sequence[Mapping[str, Any]],
    *,
    deployments: Mapping[str, Any] | None = None,
    estimate: Mapping[str, Any] | None = None,
    max_deployments: int = 40,
    method: Literal["milp", "binary_search"] = "milp",
    form: Literal["copies", "fixed_makespan", "mccormick", "rates"] = "rates",
    tolerance: float = 0.001,
    greedy_first: bool = True,
    prune: bool = True,
    warm_start: bool = True,
    time_limit: float | None = None,
    mip_gap: float = 0.0,
    threads: int = 1,
    seed: int = 0,
    presolve: bool = True,
    max_starts: int | None = None,
    slack: float = 0.0,
    solver: str | Callable[[Model, dict[str, Any]], Mapping[str, Any]] = "auto",
    progress: bool | Callable[[str, int, int], object] | None = None,
) -> ReplanResult: ...
def simulate_latency(
    request: Mapping[str, Any],
    plan: ServingPlan,
    *,
    rate: float = 0.0,
    requests: int = 10000,
    seed: int = 0,
    estimate: Mapping[str, Any] | None = None,
    memory_fraction: float = 0.9,
) -> LatencyResult: ...
def serving_plan(
    configs: Sequence[dict[str, Any]],
    workloads: dict[str, Any],
    prices: dict[str, float],
    availability: dict[str, int],
    budget: float,
    *,
    form: Literal["copies", "fixed_makespan", "mccormick", "rates"] = "copies",
    makespan: float | None = None,
    makespan_upper: float | None = None,
    surrogate_rows: bool = True,
    minimise_cost: bool = True,
) -> ServingMilp: ...
def greedy_plan(
    configs: Sequence[dict[str, Any]],
    workloads: dict[str, Any],
    prices: dict[str, float],
    availability: dict[str, int],
    budget: float,
    makespan: float | None = None,
) -> tuple[dict[str, int], dict[str, dict[str, float]]] | None: ...
def closed_form_bound(
    configs: Sequence[dict[str, Any]],
    workloads: dict[str, Any],
    prices: dict[str, float],
    availability: dict[str, int],
    budget: float,
) -> float: ...
def solve_serving_plan(
    configs: Sequence[dict[str, Any]],
    workloads: dict[str, Any],
    prices: dict[str, float],
    availability: dict[str, int],
    budget: float,
    *,
    method: Literal["milp", "binary_search"] = "milp",
    form: Literal["copies", "fixed_makespan", "mccormick", "rates"] = "rates",
    tolerance: float = 0.0001,
    greedy_first: bool = True,
    prune: bool = True,
    warm_start: bool = True,
    time_limit: float | None = None,
    mip_gap: float = 0.0,
    threads: int = 1,
    seed: int = 0,
    presolve: bool = True,
    solver: str | Callable[[Model, dict[str, Any]], Mapping[str, Any]] = "auto",
    progress: bool | Callable[[str, int, int], object] | None = None,
    deadline: float | None = None,
) -> ServingSolution: ...
def _require_request(request: Mapping[str, Any]) -> None: ...
def _require_running(running: Sequence[Mapping[str, Any]]) -> None: ...
