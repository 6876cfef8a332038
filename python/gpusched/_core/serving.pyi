# Written by python/bindings/generate_stubs.py from the bindings; do not edit.

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from .milp import Model

most_intervals: int

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
    @property
    def region(self) -> str: ...
    @property
    def fp8_tflops(self) -> float: ...
    @property
    def fp4_tflops(self) -> float: ...
    @property
    def family(self) -> str: ...
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
    @property
    def gated(self) -> bool: ...
    @property
    def experts(self) -> int: ...
    @property
    def top_k(self) -> int: ...
    @property
    def moe_intermediate(self) -> int: ...
    @property
    def shared_experts(self) -> float: ...
    @property
    def first_dense(self) -> int: ...
    @property
    def q_lora_rank(self) -> int: ...
    @property
    def kv_lora_rank(self) -> int: ...
    @property
    def rope_size(self) -> int: ...
    @property
    def nope_size(self) -> int: ...
    @property
    def value_size(self) -> int: ...
    @property
    def window(self) -> int: ...
    @property
    def window_layers(self) -> int: ...
    @property
    def linear_layers(self) -> int: ...
    @property
    def linear_key_heads(self) -> int: ...
    @property
    def linear_value_heads(self) -> int: ...
    @property
    def linear_size(self) -> int: ...
    @property
    def index_heads(self) -> int: ...
    @property
    def index_size(self) -> int: ...
    @property
    def index_top_k(self) -> int: ...
    @property
    def attention_of_fp4(self) -> Literal["bf16", "fp8", "fp4", "int4"]: ...
    @property
    def attention_of_int4(self) -> Literal["bf16", "fp8", "fp4", "int4"]: ...
    @property
    def source(self) -> str: ...
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

class ErrorBand:
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def cell(self) -> str: ...
    @property
    def n(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __copy__(self) -> ErrorBand: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> ErrorBand: ...

class PredictionErrors:
    @property
    def ttft(self) -> ErrorBand: ...
    @property
    def tpot(self) -> ErrorBand: ...
    @property
    def requests_per_s(self) -> ErrorBand: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __copy__(self) -> PredictionErrors: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> PredictionErrors: ...

class Prediction:
    @property
    def fits(self) -> bool: ...
    @property
    def ttft_s(self) -> float: ...
    @property
    def tpot_s(self) -> float: ...
    @property
    def requests_per_s(self) -> float: ...
    @property
    def running(self) -> float: ...
    @property
    def gpus(self) -> int: ...
    @property
    def error(self) -> PredictionErrors: ...
    @property
    def parts(self) -> dict[str, float]: ...
    @property
    def assumptions(self) -> list[str]: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __copy__(self) -> Prediction: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> Prediction: ...

class ServingPlan:
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
    def rate(self) -> float: ...
    @property
    def cost_bound(self) -> float: ...
    @property
    def capacity(self) -> float: ...
    @property
    def separate(self) -> bool: ...
    @property
    def binding(self) -> list[str]: ...
    @property
    def message(self) -> str: ...
    @property
    def status(self) -> Literal["optimal", "infeasible", "unbounded", "time_limit", "cancelled", "failed", "feasible"]: ...
    @property
    def makespan(self) -> float | None: ...
    @property
    def bound(self) -> float | None: ...
    @property
    def rate_bound(self) -> float | None: ...
    @property
    def cost(self) -> float: ...
    @property
    def rentals(self) -> list[dict[str, Any]]: ...
    @property
    def latencies(self) -> list[dict[str, Any]]: ...
    @property
    def calibration(self) -> dict[str, list[dict[str, Any]]]: ...
    @property
    def errors(self) -> list[dict[str, Any]]: ...
    @property
    def cost_high(self) -> float | None: ...
    @property
    def price_ranges(self) -> list[dict[str, Any]]: ...
    @property
    def solver(self) -> str: ...
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
    def starts(self) -> int: ...
    @property
    def stops(self) -> int: ...
    @property
    def cost_free(self) -> float: ...
    @property
    def plan(self) -> ServingPlan: ...
    @property
    def makespan_kept(self) -> float | None: ...
    @property
    def makespan_free(self) -> float | None: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __copy__(self) -> ReplanResult: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> ReplanResult: ...

class KindLatency:
    @property
    def model(self) -> str: ...
    @property
    def workload(self) -> str: ...
    @property
    def ttft(self) -> list[float]: ...
    @property
    def tpot(self) -> list[float]: ...
    @property
    def latency(self) -> list[float]: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __copy__(self) -> KindLatency: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> KindLatency: ...
    def ttft_percentile(self, percent: float) -> float: ...
    def tpot_percentile(self, percent: float) -> float: ...
    def percentile(self, percent: float) -> float: ...

class LatencyResult:
    @property
    def latency(self) -> list[float]: ...
    @property
    def makespan(self) -> float: ...
    @property
    def kinds(self) -> list[KindLatency]: ...
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
    def optimal(self) -> bool: ...
    @property
    def solver_calls(self) -> int: ...
    @property
    def solver(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def status(self) -> Literal["optimal", "infeasible", "unbounded", "time_limit", "cancelled", "failed", "feasible"]: ...
    @property
    def makespan(self) -> float | None: ...
    @property
    def bound(self) -> float | None: ...
    @property
    def cost(self) -> float: ...
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

class Arrival:
    @property
    def time_s(self) -> float: ...
    @property
    def input(self) -> int: ...
    @property
    def output(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __copy__(self) -> Arrival: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> Arrival: ...

class PoolSizes:
    @property
    def prefill(self) -> int: ...
    @property
    def decode(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __copy__(self) -> PoolSizes: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> PoolSizes: ...

class ReplicaTimes:
    def __init__(
        self,
        *,
        prefill_base_s: float = 0.02,
        prefill_s_per_token: float = 0.0001,
        transfer_s_per_token: float = 0.0,
        step_base_s: float = 0.02,
        step_s_per_request: float = 0.0002,
        max_batch: int = 128,
        prefill_gpus: int = 4,
        decode_gpus: int = 4,
    ) -> None: ...
    @property
    def prefill_base_s(self) -> float: ...
    @property
    def prefill_s_per_token(self) -> float: ...
    @property
    def transfer_s_per_token(self) -> float: ...
    @property
    def step_base_s(self) -> float: ...
    @property
    def step_s_per_request(self) -> float: ...
    @property
    def max_batch(self) -> int: ...
    @property
    def prefill_gpus(self) -> int: ...
    @property
    def decode_gpus(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __copy__(self) -> ReplicaTimes: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> ReplicaTimes: ...

class PoolWindow:
    def __init__(
        self,
        *,
        time_s: float = 0.0,
        seconds: float = 60.0,
        arrived: Sequence[Sequence[float]] = [],
        prefill_waiting: int = 0,
        decode_waiting: int = 0,
        prefill_busy: float = 0.0,
        decode_requests: float = 0.0,
        tokens_per_s: float = 0.0,
        ttft_s: float = float("nan"),
        tpot_s: float = float("nan"),
        ready: PoolSizes | tuple[int, int] = (1, 1),
        starting: PoolSizes | tuple[int, int] = (0, 0),
    ) -> None: ...
    @property
    def time_s(self) -> float: ...
    @property
    def seconds(self) -> float: ...
    @property
    def arrived(self) -> list[Arrival]: ...
    @property
    def prefill_waiting(self) -> int: ...
    @property
    def decode_waiting(self) -> int: ...
    @property
    def prefill_busy(self) -> float: ...
    @property
    def decode_requests(self) -> float: ...
    @property
    def tokens_per_s(self) -> float: ...
    @property
    def ttft_s(self) -> float: ...
    @property
    def tpot_s(self) -> float: ...
    @property
    def ready(self) -> PoolSizes: ...
    @property
    def starting(self) -> PoolSizes: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __copy__(self) -> PoolWindow: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> PoolWindow: ...

class AutoscalingResult:
    @property
    def requests(self) -> int: ...
    @property
    def ttft_met(self) -> float: ...
    @property
    def tpot_met(self) -> float: ...
    @property
    def both_met(self) -> float: ...
    @property
    def ttft_s(self) -> float: ...
    @property
    def tpot_s(self) -> float: ...
    @property
    def windows_met(self) -> float: ...
    @property
    def prefill_h(self) -> float: ...
    @property
    def decode_h(self) -> float: ...
    @property
    def gpu_h(self) -> float: ...
    @property
    def busy_gpu_h(self) -> float: ...
    @property
    def starts(self) -> int: ...
    @property
    def stops(self) -> int: ...
    @property
    def time_s(self) -> list[float]: ...
    @property
    def rate(self) -> list[float]: ...
    @property
    def window_ttft_s(self) -> list[float]: ...
    @property
    def window_tpot_s(self) -> list[float]: ...
    @property
    def wanted_prefill(self) -> list[int]: ...
    @property
    def wanted_decode(self) -> list[int]: ...
    @property
    def ready_prefill(self) -> list[int]: ...
    @property
    def ready_decode(self) -> list[int]: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __copy__(self) -> AutoscalingResult: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> AutoscalingResult: ...

class Autoscaler:
    def __init__(
        self,
        *,
        policy: Literal["forecast", "utilization", "token_rate", "fixed"] = "forecast",
        times: ReplicaTimes | Mapping[str, float] = {},
        ttft_s: float = 2.0,
        tpot_s: float = 0.05,
        percent: float = 90.0,
        start_s: float = 180.0,
        interval_s: float = 60.0,
        hold_s: float = 600.0,
        start: PoolSizes | tuple[int, int] = (1, 1),
        max_replicas: int = 1000,
        expected_per_s: Sequence[float] = [],
        utilization: float = 0.6,
        ratio: float = 1.0,
    ) -> None: ...
    def step(self, window: PoolWindow) -> PoolSizes: ...

def gpu_catalogue() -> list[GpuType]: ...
def paper_gpus() -> list[GpuType]: ...
def paper_gpus_dense() -> list[GpuType]: ...
def gpu_type(name: str, **changes: Any) -> GpuType: ...
def language_model(name: str | PathLike[str] | Mapping[str, Any], **changes: Any) -> LanguageModel: ...
def enumerate_deployments(
    model: LanguageModel,
    gpus: Sequence[GpuType],
    available: Sequence[int],
    *,
    degrees: Sequence[int] = [1, 2, 4, 8],
    max_stages: int = 8,
    max_gpus: int = 16,
    max_types: int = 2,
    mixed_degrees: bool = False,
    min_tokens: int = 4096,
    disconnected: Sequence[tuple[int, int]] = [],
    across_regions: bool = False,
    memory_fraction: float = 0.9,
) -> list[Deployment]: ...
def estimate_throughput(
    model: LanguageModel,
    gpus: Sequence[GpuType],
    deployment: Deployment,
    input: int,
    output: int,
    *,
    engine: Literal["vllm", "sglang", "trtllm"] = "vllm",
    error: Literal["none", "p10", "p90"] = "none",
    memory_fraction: float = 0.9,
    max_batch: int = 256,
    network: float = 0.8,
    message_s: float = 2e-05,
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
    engine: Literal["vllm", "sglang", "trtllm"] = "vllm",
    error: Literal["none", "p10", "p90"] = "none",
    memory_fraction: float = 0.9,
    max_batch: int = 256,
    network: float = 0.8,
    message_s: float = 2e-05,
    profiles: Sequence[Mapping[str, Any]] = [],
) -> float: ...
def predict(
    model: str | PathLike[str] | Mapping[str, Any],
    gpu: str,
    *,
    engine: Literal["vllm", "sglang", "trtllm"] = "vllm",
    engine_version: str = "",
    precision: Literal["bf16", "fp8", "fp4", "int4"] = "bf16",
    concurrency: int = 64,
    input: int = 1024,
    output: int = 1024,
    tensor_parallel: int = 1,
    pipeline_parallel: int = 1,
    expert_parallel: int = 1,
    attention_data_parallel: int = 1,
) -> Prediction: ...
def predict_disaggregated(
    model: str | PathLike[str] | Mapping[str, Any],
    gpu: str,
    *,
    engine: Literal["vllm", "sglang", "trtllm"] = "vllm",
    engine_version: str = "",
    precision: Literal["bf16", "fp8", "fp4", "int4"] = "bf16",
    concurrency: int = 64,
    input: int = 1024,
    output: int = 1024,
    prefill: Mapping[str, Any] | None = None,
    decode: Mapping[str, Any] | None = None,
) -> Prediction: ...
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
    measured_only: bool = False,
    unmeasured_pipelines: bool = False,
    machines: bool = False,
    goal: Literal["cheapest", "most_rate"] = "cheapest",
    ttft_p50_s: float | None = None,
    ttft_p90_s: float | None = None,
    ttft_p95_s: float | None = None,
    ttft_p99_s: float | None = None,
    tpot_p50_s: float | None = None,
    tpot_p90_s: float | None = None,
    tpot_p95_s: float | None = None,
    tpot_p99_s: float | None = None,
    latency_p50_s: float | None = None,
    latency_p90_s: float | None = None,
    latency_p95_s: float | None = None,
    latency_p99_s: float | None = None,
    utilization: float = 0.9,
    simulated_requests: int = 6000,
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
    rate: float | Mapping[str, float] | None = None,
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
    measured_only: bool = False,
    unmeasured_pipelines: bool = False,
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
def _curve(
    request: Mapping[str, Any],
    rates: Sequence[float] = [],
    targets: Sequence[Mapping[str, float]] = [],
    *,
    deployments: Mapping[str, Any] | None = None,
    estimate: Mapping[str, Any] | None = None,
    max_deployments: int = 40,
    measured_only: bool = False,
    unmeasured_pipelines: bool = False,
    machines: bool = False,
    ttft_p50_s: float | None = None,
    ttft_p90_s: float | None = None,
    ttft_p95_s: float | None = None,
    ttft_p99_s: float | None = None,
    tpot_p50_s: float | None = None,
    tpot_p90_s: float | None = None,
    tpot_p95_s: float | None = None,
    tpot_p99_s: float | None = None,
    latency_p50_s: float | None = None,
    latency_p90_s: float | None = None,
    latency_p95_s: float | None = None,
    latency_p99_s: float | None = None,
    utilization: float = 0.9,
    simulated_requests: int = 6000,
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
) -> list[tuple[float, dict[str, float | None], ServingPlan]]: ...
def calibrate(request: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]: ...
def request_to_dict(request: Mapping[str, Any]) -> dict[str, Any]: ...
def _curve_to_dict(
    rates: Sequence[float], targets: Sequence[object], plans: Sequence[ServingPlan]
) -> dict[str, Any]: ...
def _sweep_to_dict(budgets: Sequence[float], plans: Sequence[ServingPlan]) -> dict[str, Any]: ...
def plan_to_dict(
    plan: ServingPlan, changed: ReplanResult | None = None, *, price_ranges: bool = False
) -> dict[str, Any]: ...
def replan(
    request: Mapping[str, Any],
    running: ServingPlan | Mapping[str, Any] | Sequence[Mapping[str, Any]],
    *,
    deployments: Mapping[str, Any] | None = None,
    estimate: Mapping[str, Any] | None = None,
    max_deployments: int = 40,
    measured_only: bool = False,
    unmeasured_pipelines: bool = False,
    machines: bool = False,
    ttft_p50_s: float | None = None,
    ttft_p90_s: float | None = None,
    ttft_p95_s: float | None = None,
    ttft_p99_s: float | None = None,
    tpot_p50_s: float | None = None,
    tpot_p90_s: float | None = None,
    tpot_p95_s: float | None = None,
    tpot_p99_s: float | None = None,
    latency_p50_s: float | None = None,
    latency_p90_s: float | None = None,
    latency_p95_s: float | None = None,
    latency_p99_s: float | None = None,
    utilization: float = 0.9,
    simulated_requests: int = 6000,
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
    rate: float | Mapping[str, float] | None = None,
) -> ReplanResult: ...
def simulate_latency(
    request: Mapping[str, Any],
    plan: ServingPlan | Mapping[str, Any] | Sequence[Mapping[str, Any]],
    *,
    rate: float = 0.0,
    requests: int = 10000,
    seed: int = 0,
    warm_up: float = 0.0,
    estimate: Mapping[str, Any] | None = None,
) -> LatencyResult: ...
def serving_milp(
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
def daily_arrivals(
    trace: npt.ArrayLike,
    *,
    mean_rate: float = 10.0,
    swing: float = 0.5,
    peak_hour: float = 15.0,
    hours: float = 24.0,
    level_sigma: float = 0.1,
    surge_factor: float = 1.5,
    surge_minutes: float = 30.0,
    seed: int = 0,
) -> npt.NDArray[np.float64]: ...
def expected_rate(
    time_s: float,
    *,
    mean_rate: float = 10.0,
    swing: float = 0.5,
    peak_hour: float = 15.0,
    hours: float = 24.0,
    level_sigma: float = 0.1,
    surge_factor: float = 1.5,
    surge_minutes: float = 30.0,
    seed: int = 0,
) -> float: ...
def pool_sizes(
    sample: npt.ArrayLike,
    rate: float,
    *,
    policy: Literal["forecast", "utilization", "token_rate", "fixed"] = "forecast",
    times: ReplicaTimes | Mapping[str, float] = {},
    ttft_s: float = 2.0,
    tpot_s: float = 0.05,
    percent: float = 90.0,
    start_s: float = 180.0,
    interval_s: float = 60.0,
    hold_s: float = 600.0,
    start: PoolSizes | tuple[int, int] = (1, 1),
    max_replicas: int = 1000,
    expected_per_s: Sequence[float] = [],
    utilization: float = 0.6,
    ratio: float = 1.0,
    variation: float = 1.0,
) -> PoolSizes: ...
def replica_times(
    model: LanguageModel,
    gpus: Sequence[GpuType],
    prefill: Deployment,
    decode: Deployment,
    input: int,
    output: int,
    longest_input: int = 8192,
    *,
    engine: Literal["vllm", "sglang", "trtllm"] = "vllm",
    error: Literal["none", "p10", "p90"] = "none",
    memory_fraction: float = 0.9,
    max_batch: int = 256,
    network: float = 0.8,
    message_s: float = 2e-05,
    profiles: Sequence[Mapping[str, Any]] = [],
) -> ReplicaTimes: ...
def simulate_autoscaling(
    arrivals: npt.ArrayLike,
    policy: str | Callable[[PoolWindow], PoolSizes | tuple[int, int]] = "forecast",
    *,
    times: ReplicaTimes | Mapping[str, float] = {},
    ttft_s: float = 2.0,
    tpot_s: float = 0.05,
    percent: float = 90.0,
    start_s: float = 180.0,
    interval_s: float = 60.0,
    hold_s: float = 600.0,
    start: PoolSizes | tuple[int, int] = (1, 1),
    max_replicas: int = 1000,
    expected_per_s: Sequence[float] = [],
    utilization: float = 0.6,
    ratio: float = 1.0,
    slowdown: float = 1.0,
    score_s: float = 300.0,
) -> AutoscalingResult: ...
def fewest_fixed(
    arrivals: npt.ArrayLike,
    *,
    times: ReplicaTimes | Mapping[str, float] = {},
    ttft_s: float = 2.0,
    tpot_s: float = 0.05,
    percent: float = 90.0,
    start_s: float = 180.0,
    interval_s: float = 60.0,
    hold_s: float = 600.0,
    max_replicas: int = 1000,
    expected_per_s: Sequence[float] = [],
    utilization: float = 0.6,
    ratio: float = 1.0,
    slowdown: float = 1.0,
    score_s: float = 300.0,
    windows_met: float = 0.99,
) -> PoolSizes: ...
def _require_request(request: Mapping[str, Any], rate: float | Mapping[str, float] | None = None) -> None: ...
def _require_running(running: ServingPlan | Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None: ...
