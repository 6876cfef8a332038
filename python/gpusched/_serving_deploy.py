"""Serving plans as command lines of inference engines and as Kubernetes manifests."""

from __future__ import annotations

import copy
import hashlib
import inspect
import json
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ._checks import as_dict, as_list, as_options, integer, number, one_of
from ._core import did_you_mean
from ._core import serving as core
from ._core.serving import ServingPlan
from ._views.tables import counted
from .errors import InvalidInput, repr_text


@dataclass(frozen=True)
class Engine:
    """The flags of an engine, as in the source of the release `version`."""

    title: str
    version: str
    image: str
    start: tuple[str, ...]  # words before the model
    tensor: str
    pipeline: str
    layers: str  # environment variable
    memory: str
    memory_note: str
    batch: str
    length: str
    kv_8bit: str
    leader: tuple[str, ...]  # with the address of the first machine
    worker: tuple[str, ...]  # of the other machines


LEADER_PORT = 29501
ENGINES = {
    "vllm": Engine(
        title="vLLM",
        version="0.33.0",
        image="vllm/vllm-openai",
        start=("vllm", "serve"),
        tensor="--tensor-parallel-size",
        pipeline="--pipeline-parallel-size",
        layers="VLLM_PP_LAYER_PARTITION",
        memory="--gpu-memory-utilization",
        memory_note="it includes activations, so the KV cache is smaller than in the plan",
        batch="--max-num-seqs",
        length="--max-model-len",
        kv_8bit="fp8",
        leader=("--master-addr", "{}", "--master-port", str(LEADER_PORT)),
        worker=("--headless",),
    ),
    "sglang": Engine(
        title="SGLang",
        version="0.5.23",
        image="lmsysorg/sglang",
        start=("sglang", "serve", "--model-path"),
        tensor="--tp-size",
        pipeline="--pp-size",
        layers="SGLANG_PP_LAYER_PARTITION",
        memory="--mem-fraction-static",
        memory_note="activations use the rest",
        batch="--max-running-requests",
        length="--context-length",
        kv_8bit="fp8_e4m3",
        leader=("--dist-init-addr", f"{{}}:{LEADER_PORT}"),
        worker=(),
    ),
}

CHECKPOINTS = {
    "Llama-3-8B": "meta-llama/Meta-Llama-3-8B",
    "Llama-3-70B": "meta-llama/Meta-Llama-3-70B",
    "Llama-2-70B": "meta-llama/Llama-2-70b-hf",
}
"""Checkpoints with 16-bit weights on Hugging Face, by known model."""

SHAPE = ("layers", "hidden", "heads", "kv_heads", "head_size", "intermediate", "vocabulary")

PRODUCTS = {
    "V100": "Tesla-V100-SXM2-16GB",
    "T4": "Tesla-T4",
    "L4": "NVIDIA-L4",
    "A40": "NVIDIA-A40",
    "A6000": "NVIDIA-RTX-A6000",
    "L40": "NVIDIA-L40",
    "L40S": "NVIDIA-L40S",
    "RTX4090": "NVIDIA-GeForce-RTX-4090",
    "4090": "NVIDIA-GeForce-RTX-4090",
    "A100": "NVIDIA-A100-SXM4-80GB",
    "A100-40GB": "NVIDIA-A100-SXM4-40GB",
    "A100-80GB": "NVIDIA-A100-SXM4-80GB",
    "H100": "NVIDIA-H100-80GB-HBM3",
    "H200": "NVIDIA-H200",
    "B200": "NVIDIA-B200",
}
"""The label `nvidia.com/gpu.product` of NVIDIA's GPU feature discovery, by GPU type."""

WITHOUT_BFLOAT16 = {"V100", "T4"}
PORT = 8000
START_LIMIT_S = 3600
NAME_LENGTH = 45
"""Leaves room for suffixes that Kubernetes adds; a DNS label has at most 63 characters."""
DNS_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
LABEL_VALUE = r"[A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?"


def lengths(kind: Mapping[str, Any]) -> list[tuple[int, int, float]]:
    """The tokens in and out of a kind's requests, with their weights."""
    if not kind.get("lengths"):
        return [(kind["input"], kind["output"], 1.0)]
    return [(given, answer, *weight, 1.0)[:3] for given, answer, *weight in kind["lengths"]]


@dataclass(frozen=True)
class Launch:
    """The engine's processes for the replicas of one deployment of a plan."""

    engine: Engine
    name: str  # a DNS label
    model: str
    title: str
    count: int
    machines: tuple[str, ...]  # GPU type of each machine of a replica
    gpus: int  # on each machine
    words: tuple[str, ...]
    environment: dict[str, str]
    routes: dict[str, str]  # share and rate in words, by kind of requests
    assumptions: list[str]

    def command(self, rank: int | str, leader: str) -> list[str]:
        """The words of the command on one machine of a replica."""
        words = list(self.words)
        if len(self.machines) > 1:
            words += ["--nnodes", str(len(self.machines)), "--node-rank", str(rank)]
            words += [word.format(leader) for word in self.engine.leader]
        return [*words, *(self.engine.worker if rank != 0 else ())]

    def comments(self) -> list[str]:
        served = [f"serves {route} of the {kind} requests" for kind, route in self.routes.items()]
        return [self.title, *served, "assumptions:", *(f"- {text}" for text in self.assumptions)]


class Asked:
    """A request and the settings of an export."""

    def __init__(
        self,
        called: str,
        request: Mapping[str, Any],
        engine: str,
        model_ids: Mapping[str, str] | None,
        max_model_len: int | None,
    ) -> None:
        self.engine = ENGINES[one_of("engine", engine, ENGINES)]
        asked = as_dict(called, "request", request)
        whole = core.request_to_dict(with_loads({"budget": 1.0, **asked}))
        self.models, self.gpus = whole["models"], whole["gpus"]
        ids = as_dict(called, "model_ids", {} if model_ids is None else model_ids)
        self.checkpoints = checkpoints(asked, ids)
        self.types = {name: (fields or {}).get("type", name) for name, fields in asked["gpus"].items()}
        self.length = None if max_model_len is None else integer("max_model_len", max_model_len, 1, 10**9)

    def require_engine(self, model: str, title: str) -> None:
        """Raises InvalidInput if the engine has no weights or KV cache like those of the model."""
        weights, kv = (self.models[model][field] for field in ("bytes_per_weight", "bytes_per_kv"))
        if self.checkpoints[model] in CHECKPOINTS.values() and weights not in (1, 2):
            problem = f"{title}: no checkpoint with {weights:g} bytes per weight is known"
            raise InvalidInput(f"{problem}; expected model_ids with {repr_text(model)}")
        if kv not in (1, 2):
            raise InvalidInput(f"{title}: bytes_per_kv is {kv:g}; {self.engine.title} needs 1 or 2")

    def tokens(self, shapes: Mapping[str, Mapping[str, Any]], title: str) -> int | None:
        """The most tokens of a request of these kinds; None without kinds."""
        longest = max(
            (given + answer for shape in shapes.values() for given, answer, _ in lengths(shape)), default=None
        )
        if self.length is None or longest is None:
            return longest
        if self.length < longest:
            raise InvalidInput(f"{title}: max_model_len is {self.length}; expected at least {longest}")
        return self.length

    def region(self, gpu: str) -> str | None:
        """The region of a GPU type, as the label of nodes has it."""
        region = self.gpus[gpu].get("region")
        if region and not re.fullmatch(LABEL_VALUE, region, re.A):
            problem = f"gpus: {repr_text(gpu)}: region: {repr_text(region)} cannot be the label of a node"
            raise InvalidInput(f"{problem}; expected at most 63 letters, digits, '-', '_' and '.'")
        return region


def require_exportable(
    request: Mapping[str, Any],
    engine: str = "vllm",
    *,
    model_ids: Mapping[str, str] | None = None,
    max_model_len: int | None = None,
    kubernetes: bool = False,
) -> None:
    """Raises InvalidInput for all that would make the export of any plan for the request fail."""
    asked = Asked("plan_serving", request, engine, model_ids, max_model_len)
    problems: list[str] = []

    def check(require: Callable[..., object], *arguments: Any) -> None:
        try:
            require(*arguments)
        except InvalidInput as error:
            problems.extend(error.problems)

    for model, fields in asked.models.items():
        check(asked.require_engine, model, f"model {repr_text(model)}")
        check(asked.tokens, fields["workloads"], f"model {repr_text(model)}")
    for gpu in asked.gpus if kubernetes else ():
        check(asked.region, gpu)
    if problems:
        raise InvalidInput(problems)


class Planned(Asked):
    """A plan with its request and the settings of a call."""

    def __init__(
        self,
        called: str,
        request: Mapping[str, Any],
        plan: Any,
        engine: str,
        model_ids: Mapping[str, str] | None,
        max_model_len: int | None,
        estimate: Mapping[str, Any] | None,
    ) -> None:
        super().__init__(called, request, engine, model_ids, max_model_len)
        known = inspect.signature(core.estimate_throughput).parameters
        options = [name for name, field in known.items() if field.kind is field.KEYWORD_ONLY]
        changed = as_options(called, "estimate", estimate, options)
        memory = changed.get("memory_fraction", known["memory_fraction"].default)
        self.memory = number("estimate: memory_fraction", memory, 0.05, 1)
        batch = changed.get("max_batch", known["max_batch"].default)
        self.max_batch = integer("estimate: max_batch", batch, 1, 10**9)
        document = core.plan_to_dict(plan) if isinstance(plan, ServingPlan) else plan
        try:
            core._require_running(document)
        except InvalidInput as error:
            raise InvalidInput(
                ["plan" + problem.removeprefix("running") for problem in error.problems]
            ) from None
        self.plan = document if isinstance(document, Mapping) else {"replicas": document}
        require_numbers(called, self.plan)
        self.latencies = {(of["model"], of["workload"]): of for of in self.plan.get("latencies", ())}

    def launches(self) -> list[Launch]:
        """Raises InvalidInput with the problems of all deployments."""
        found: list[Launch] = []
        problems: list[str] = []
        for at, replicas in enumerate(self.plan["replicas"]):
            try:
                found.append(self.launch(replicas, {launch.name for launch in found}))
            except InvalidInput as error:
                problems += [f"plan: /replicas/{at}: {problem}" for problem in error.problems]
        if not self.plan["replicas"]:
            problems.append("plan: has no replicas; expected a plan that serves the request")
        if problems:
            raise InvalidInput(problems)
        return found

    def launch(self, replicas: Mapping[str, Any], taken: set[str]) -> Launch:
        model, stages, engine = replicas["model"], replicas["stages"], self.engine
        self.require_same_request(replicas)
        fields = self.models[model]
        deployment = replicas.get("deployment") or "+".join(
            f"{stage['gpu']} 1x{stage['degree']}" for stage in stages
        )
        title = f"{model} on {deployment}"
        machines = self.machines(stages, title)
        if fields["heads"] % stages[0]["degree"]:
            problem = f"{stages[0]['degree']} GPUs of a stage do not divide {fields['heads']} attention heads"
            raise InvalidInput(f"{title}: {problem}")
        shapes = {kind: fields["workloads"][kind] for kind, share in replicas["share"].items() if share}
        tokens = self.tokens(shapes, title)
        each = stages[0]["degree"] * len(stages) // len(machines)
        checkpoint = self.checkpoints[model]
        weights, kv = fields["bytes_per_weight"], fields["bytes_per_kv"]
        has_16_bits = checkpoint in CHECKPOINTS.values()
        converts = has_16_bits and weights == 1
        self.require_engine(model, title)
        options = {
            engine.tensor: stages[0]["degree"],
            engine.pipeline: len(stages),
            engine.memory: f"{self.memory:g}",
            engine.batch: self.max_batch,
            engine.length: tokens,
            "--kv-cache-dtype": engine.kv_8bit if kv == 1 else "auto",
            "--quantization": "fp8" if converts else None,
            "--dtype": "half" if WITHOUT_BFLOAT16 & {self.types[gpu] for gpu in machines} else None,
            "--host": "0.0.0.0",
            "--port": PORT,
        }
        words = [*engine.start, checkpoint]
        for flag, value in options.items():
            words += [] if value is None else [flag, str(value)]
        assumptions = [self.kind_in_words(replicas, kind, shape) for kind, shape in shapes.items()]
        assumptions += [
            f"longest request: {tokens} tokens with its answer; longer ones are rejected ({engine.length})",
            f"batch: at most {self.max_batch} requests of a replica, fewer if the KV cache is full "
            f"({engine.batch})",
            f"memory for weights and KV cache: {self.memory:g} of a GPU ({engine.memory}); "
            f"{engine.memory_note}",
            f"weights: {checkpoint}, {8 * weights:g} bits"
            + (", converted by the engine (--quantization)" if converts else "")
            + f"; KV cache: {8 * kv:g} bits (--kv-cache-dtype)",
            f"machines: a replica is on {counted(len(machines), 'machine')} with "
            f"{counted(each, 'GPU')} each: " + ", ".join(machines),
        ]
        if len(set(machines)) > 1:
            assumptions.append(f"{engine.title} works with different GPU types in one replica")
        if "cost" in replicas:
            assumptions.append(f"cost: {replicas['cost']:.2f} $/h for all replicas")
        assumptions.append(f"flags: those of {engine.title} {engine.version}")
        split = ",".join(str(stage["layers"]) for stage in stages)
        return Launch(
            engine,
            unique_name(f"{model}-{deployment}", taken),
            model,
            f"{title}: {counted(replicas['count'], 'replica')}",
            replicas["count"],
            machines,
            each,
            tuple(words),
            {engine.layers: split} if len(stages) > 1 else {},
            {kind: self.route_in_words(replicas, kind) for kind in shapes},
            assumptions,
        )

    def require_same_request(self, replicas: Mapping[str, Any]) -> None:
        model, stages = replicas["model"], replicas["stages"]
        fields = self.models.get(model)
        problems = []
        if fields is None:
            problems.append(f"model {repr_text(model)} is not in the request")
        else:
            problems += [
                f"kind {repr_text(kind)} of model {repr_text(model)} is not in the request"
                for kind in replicas["share"]
                if kind not in fields["workloads"]
            ]
            if (layers := sum(stage["layers"] for stage in stages)) != fields["layers"]:
                wrong = f"stages have {layers} layers of model {repr_text(model)}"
                problems.append(f"{wrong}; expected {fields['layers']}, as in the request")
        problems += [
            f"GPU type {repr_text(gpu)} is not in the request"
            for gpu in dict.fromkeys(stage["gpu"] for stage in stages)
            if gpu not in self.gpus
        ]
        if problems:
            raise InvalidInput(problems)

    def machines(self, stages: Sequence[Mapping[str, Any]], title: str) -> tuple[str, ...]:
        """The GPU types of the fewest machines that hold equally many whole stages of one type each."""
        degree = stages[0]["degree"]
        if any(stage["degree"] != degree for stage in stages):
            degrees = ", ".join(str(stage["degree"]) for stage in stages)
            raise InvalidInput(f"{title}: stages have {degrees} GPUs; {self.engine.title} needs equal stages")
        for count in range(1, len(stages) + 1):
            size = len(stages) // count
            parts = [stages[at : at + size] for at in range(0, len(stages), size)]
            if len(stages) % count == 0 and all(
                len({stage["gpu"] for stage in part}) == 1
                and size * degree <= self.gpus[part[0]["gpu"]]["per_machine"]
                for part in parts
            ):
                return tuple(part[0]["gpu"] for part in parts)
        raise InvalidInput(f"{title}: a stage of {degree} GPUs does not fit into a machine")

    def rate(self, model: str, kind: str) -> float | None:
        """Requests per second of a kind; None for a batch."""
        planned = self.latencies.get((model, kind), self.models[model]["workloads"][kind])
        return planned.get("rate")

    def route_in_words(self, replicas: Mapping[str, Any], kind: str) -> str:
        share, rate = replicas["share"][kind], self.rate(replicas["model"], kind)
        return f"{100 * share:.4g} %" + (f" ({rate * share:.4g} requests/s)" if rate else "")

    def kind_in_words(self, replicas: Mapping[str, Any], kind: str, shape: Mapping[str, Any]) -> str:
        weight = sum(of for *_, of in lengths(shape))
        given, answer = (sum(each[i] * each[2] for each in lengths(shape)) / weight for i in (0, 1))
        mean = "" if len(lengths(shape)) == 1 else " in the mean"
        words = f"{kind} requests: {given:.6g} tokens in, {answer:.6g} out{mean}"
        if hits := shape.get("prefix_hits"):
            words += f"; {100 * hits:g} % of each prompt are in the prefix cache"
        if kind in replicas.get("requests_per_s", ()) and kind in replicas.get("source", ()):
            most = replicas.get("within_targets", {}).get(kind, replicas["requests_per_s"][kind])
            words += f"; at most {most:.4g} requests/s of one replica ({replicas['source'][kind]})"
        latency = self.latencies.get((replicas["model"], kind), {})
        for name, what in (("ttft", "first token"), ("tpot", "further tokens")):
            if seconds := latency.get(f"{name}_p90_s"):
                words += f"; {what}: {seconds:.3g} s at p90 ({latency.get(name + '_source', 'estimated')})"
        return words


def with_loads(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """The request with a load of each kind: the call that made the plan may have given the rates."""
    loads = {name for kind in workloads_of(request) for name in ("rate", "requests", "trace") if name in kind}
    whole = copy.deepcopy(dict(request))
    for kind in workloads_of(whole):
        if kind.keys().isdisjoint(("rate", "requests", "trace")):
            kind["rate" if loads - {"requests"} else "requests"] = 0 if loads else 1
    return whole


def workloads_of(request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The workloads of a request that may be malformed."""
    models = request.get("models")
    for served in models.values() if isinstance(models, dict) else ():
        kinds = served.get("workloads") if isinstance(served, dict) else None
        for workload in kinds.values() if isinstance(kinds, dict) else ():
            if isinstance(workload, dict):
                yield workload


def require_numbers(called: str, plan: Mapping[str, Any]) -> None:
    """Raises InvalidInput unless the values of a plan's document that comments show are as in its schema."""
    for at, replicas in enumerate(plan["replicas"]):
        place = f"plan: /replicas/{at}"
        if "share" not in replicas:
            raise InvalidInput(f"{place}: field 'share' is missing")
        integer(f"{place}/count", replicas["count"], 1, 10**9)
        number(f"{place}/cost", replicas.get("cost", 0), 0, 1e12)
        for name, most in (("share", 1 + 1e-6), ("requests_per_s", 1e12), ("within_targets", 1e12)):
            for kind, value in as_dict(called, f"{place}/{name}", replicas.get(name, {})).items():
                number(f"{place}/{name}/{kind}", value, 0, most)
        as_dict(called, f"{place}/source", replicas.get("source", {}))
    for name, keys, shown in (
        ("latencies", ("model", "workload"), ("rate", "ttft_p90_s", "tpot_p90_s")),
        ("rentals", ("gpu", "count", "spot"), ("count", "spot")),
    ):
        for at, row in enumerate(as_list(called, f"plan: /{name}", plan.get(name, ()), "dicts")):
            fields = as_dict(called, f"plan: /{name}/{at}", row)
            if missing := [key for key in keys if key not in fields]:
                raise InvalidInput(f"plan: /{name}/{at}: field {missing[0]!r} is missing")
            for key in shown:
                number(f"plan: /{name}/{at}/{key}", fields.get(key) or 0, 0, 1e12)


EXPECTED_ID = "expected an id on Hugging Face, like 'ORGANISATION/NAME', or a path"


def checkpoints(request: Mapping[str, Any], model_ids: Mapping[str, str]) -> dict[str, str]:
    """The checkpoint of each model of a request: the caller's, that of a known model, or its name."""
    models, problems = request["models"], []
    for name, checkpoint in model_ids.items():
        if name not in models:
            near = did_you_mean(str(name), list(models))
            problems.append(f"model_ids: model {repr_text(name)} is not in the request{near}")
        elif not isinstance(checkpoint, str) or not re.fullmatch(r"[\w./][\w./@:+=-]*", checkpoint, re.A):
            problems.append(f"model_ids: {repr_text(name)}: {repr_text(checkpoint)}; {EXPECTED_ID}")
    found = {}
    for name, fields in models.items():
        found[name] = model_ids.get(name) or known_checkpoint(name, fields or {})
        if name not in model_ids and not re.fullmatch(r"\w[\w.-]*/[\w.-]+", found[name], re.A):
            problems.append(f"model_ids: no checkpoint of model {repr_text(name)} is known; {EXPECTED_ID}")
    if problems:
        raise InvalidInput(problems)
    return found


def known_checkpoint(name: str, fields: Mapping[str, Any]) -> str:
    """The checkpoint of a known model whose shape is not changed, else the model's name."""
    kind = fields.get("type", name)
    if kind not in CHECKPOINTS:
        return name
    known = core.language_model(kind)
    changed = [each for each in SHAPE if fields.get(each, getattr(known, each)) != getattr(known, each)]
    return name if changed else CHECKPOINTS[kind]


def command_lines(
    request: Mapping[str, Any],
    plan: ServingPlan | Mapping[str, Any] | Sequence[Mapping[str, Any]],
    engine: str = "vllm",
    *,
    model_ids: Mapping[str, str] | None = None,
    max_model_len: int | None = None,
    estimate: Mapping[str, Any] | None = None,
) -> list[str]:
    """The shell commands that start the engine for a plan, one for each machine of a replica of each deployment.

    Each starts with comments: the number of replicas, their share of the requests, and all assumptions.
    `shlex.split(command, comments=True)` has its words.

    `request`: the request of the plan. `plan`: a plan, its document, or a list of replicas.
    `engine`: `"vllm"` or `"sglang"`.
    `model_ids`: checkpoints by model, as ids on Hugging Face or paths. The default is that of a known model,
    or the model's name if it is such an id.
    `max_model_len`: the most tokens of a request with its answer; by default those of the longest kind that
    a deployment serves.
    `estimate`: the option of `plan_serving`; its `memory_fraction` and `max_batch` are used.

    Raises InvalidInput for malformed input, and if the engine cannot run a deployment.
    """
    planned = Planned("command_lines", request, plan, engine, model_ids, max_model_len, estimate)
    lines = []
    for launch in planned.launches():
        for rank, gpu in enumerate(launch.machines):
            comments = launch.comments()
            if len(launch.machines) > 1:
                where = f"machine {rank + 1} of {len(launch.machines)}, with {launch.gpus} {gpu}"
                comments.append(f"{where}; LEADER_ADDRESS is the address of machine 1")
            if launch.count > 1:
                comments.append(f"run it {launch.count} times, each with GPUs and ports of its own")
            words = [f"{name}={value}" for name, value in launch.environment.items()]
            for word in launch.command(rank, "$LEADER_ADDRESS"):
                words.append(f'"{word}"' if "$" in word else shlex.quote(word))
            lines.append(comment_block(comments) + " ".join(words))
    return lines


def manifests(
    request: Mapping[str, Any],
    plan: ServingPlan | Mapping[str, Any] | Sequence[Mapping[str, Any]],
    engine: str = "vllm",
    *,
    model_ids: Mapping[str, str] | None = None,
    max_model_len: int | None = None,
    estimate: Mapping[str, Any] | None = None,
    namespace: str | None = None,
    image: str | None = None,
) -> str:
    """Kubernetes manifests of a plan as YAML: a Deployment and a Service for each deployment of the plan.

    If a replica needs several machines, a LeaderWorkerSet takes the place of the Deployment. Comments name the
    share of the requests that each Service gets, and all assumptions.

    `namespace`: none by default. `image`: by default that of the engine's release. `engine`, `model_ids`,
    `max_model_len` and `estimate`: as for `command_lines`.

    Raises InvalidInput for malformed input, and if the engine or Kubernetes cannot run a deployment.
    """
    if namespace is not None and not (isinstance(namespace, str) and re.fullmatch(DNS_LABEL, namespace)):
        raise InvalidInput(f"namespace: {repr_text(namespace)}; expected a DNS label, like 'serving'")
    if image is not None and not (isinstance(image, str) and re.fullmatch(r"[\w./@:-]+", image, re.A)):
        raise InvalidInput(f"image: {repr_text(image)}; expected a name with a tag, like 'NAME:TAG'")
    planned = Planned("manifests", request, plan, engine, model_ids, max_model_len, estimate)
    launches = planned.launches()
    if others := [gpu for launch in launches for gpu in launch.machines if planned.types[gpu] == "MI300X"]:
        raise InvalidInput(f"plan: GPU type {repr_text(others[0])}; manifests need GPUs of NVIDIA")
    text = comment_block(overview(planned, launches))
    for launch in launches:
        workload, service = objects(planned, launch, image)
        for comments, item in ((launch.comments(), workload), ([], service)):
            if namespace is not None:
                item["metadata"]["namespace"] = namespace
            text += "---\n" + comment_block(comments) + "".join(f"{line}\n" for line in yaml_lines(item))
    return text


def overview(planned: Planned, launches: Sequence[Launch]) -> Iterator[str]:
    """The routes of each kind of requests, and the use of the GPUs."""
    yield "Routes: send each kind of requests to these Services, in these shares:"
    for launch in launches:
        for kind, route in launch.routes.items():
            yield f"  {launch.model}, {kind}: {launch.name} {route}"
    yield "Assumptions:"
    yield "- requests take turns between the replicas of a Service, which spreads connections"
    yield f"- an engine loads its model within {START_LIMIT_S // 60} minutes of the start of its pod"
    yield "- the secret hf-token has the key token if a checkpoint needs one"
    yield "- nodes have the labels of NVIDIA's GPU feature discovery"
    rented = {rental["gpu"]: rental["count"] + rental["spot"] for rental in planned.plan.get("rentals", ())}
    for gpu, fields in planned.gpus.items():
        pods: Counter[int] = Counter()
        for launch in launches:
            pods[launch.gpus] += launch.count * launch.machines.count(gpu)
        if pods := +pods:
            used, size = sum(gpus * count for gpus, count in pods.items()), fields["per_machine"]
            use = f"- {gpu}: {counted(used, 'GPU')} in {counted(pods.total(), 'pod')}"
            use += f" on {counted(machines_for(pods, size), 'machine')} of {size}"
            use += f"; the plan rents {rented[gpu]}" if gpu in rented else ""
            label = (
                "" if planned.types[gpu] in PRODUCTS else "; their label nvidia.com/gpu.product is unknown"
            )
            yield use + label


def machines_for(pods: Counter[int], size: int) -> int:
    """The machines with `size` GPUs that pods need, by their number of GPUs, each whole on a machine.

    The largest come first, each to the machine with the least room for it.
    """
    free: Counter[int] = Counter()  # machines by free GPUs
    for gpus, count in sorted(pods.items(), reverse=True):
        while count:
            left = min((left for left in +free if left >= gpus), default=size)
            each = left // gpus
            full = min(free[left] or count, count // each)
            machines, each = (full, each) if full else (1, count)
            free[left] -= min(free[left], machines)
            free[left - each * gpus] += machines
            count -= machines * each
    return free.total()


def objects(planned: Planned, launch: Launch, image: str | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The Deployment or LeaderWorkerSet of a deployment, and its Service."""
    labels = {"app.kubernetes.io/name": launch.name, "app.kubernetes.io/component": "server"}
    server = {"metadata": {"labels": labels}, "spec": pod(planned, launch, 0, image)}
    metadata = {"name": launch.name, "labels": {"app.kubernetes.io/name": launch.name}}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": dict(metadata),
        "spec": {"selector": labels, "ports": [{"name": "http", "port": 80, "targetPort": PORT}]},
    }
    if len(launch.machines) == 1:
        deployment = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata,
            "spec": {
                "replicas": launch.count,
                # No GPUs are left for more pods than these.
                "strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
                "selector": {"matchLabels": labels},
                "template": server,
            },
        }
        return deployment, service
    if len(set(launch.machines[1:])) > 1:
        problem = f"machines 2 to {len(launch.machines)} have different GPU types"
        raise InvalidInput(f"plan: {launch.title}: {problem}, but workers of a LeaderWorkerSet are equal")
    worker_labels = {**labels, "app.kubernetes.io/component": "worker"}
    group = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {**metadata, "name": f"{launch.name}-group"},  # a Service gets this name
        "spec": {
            "replicas": launch.count,
            "leaderWorkerTemplate": {
                "size": len(launch.machines),
                "restartPolicy": "RecreateGroupOnPodRestart",
                "leaderTemplate": server,
                "workerTemplate": {
                    "metadata": {"labels": worker_labels},
                    "spec": pod(planned, launch, 1, image),
                },
            },
        },
    }
    return group, service


def pod(planned: Planned, launch: Launch, rank: int, image: str | None) -> dict[str, Any]:
    """The pod of the first machine of a replica (rank 0) or of its other machines (1)."""
    gpu, engine = launch.machines[rank], launch.engine
    product = PRODUCTS.get(planned.types[gpu])
    selector = {"nvidia.com/gpu.product": product, "topology.kubernetes.io/region": planned.region(gpu)}
    health = {"httpGet": {"path": "/health", "port": PORT}, "periodSeconds": 10}
    token = {"name": "hf-token", "key": "token", "optional": True}
    container: dict[str, Any] = {
        "name": "engine",
        "image": image or f"{engine.image}:v{engine.version}",
        "command": launch.command("$(LWS_WORKER_INDEX)" if rank else 0, "$(LWS_LEADER_ADDRESS)"),
        "env": [
            {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": token}},
            *({"name": name, "value": value} for name, value in launch.environment.items()),
        ],
        "resources": {"limits": {"nvidia.com/gpu": launch.gpus}},
        "volumeMounts": [{"name": "shared-memory", "mountPath": "/dev/shm"}],
    }
    if rank == 0:
        container["ports"] = [{"name": "http", "containerPort": PORT}]
        container["startupProbe"] = {**health, "failureThreshold": START_LIMIT_S // 10}
        container["readinessProbe"] = health
    return {
        "enableServiceLinks": False,  # vLLM reads variables such as VLLM_PORT
        "nodeSelector": {label: value for label, value in selector.items() if value},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "containers": [container],
        "volumes": [{"name": "shared-memory", "emptyDir": {"medium": "Memory"}}],
    }


def unique_name(text: str, taken: set[str]) -> str:
    """A DNS label like the text that is not taken."""
    name = re.sub("[^a-z0-9]+", "-", text.lower()).strip("-")
    name = name if name[:1].isalpha() else f"model-{name}".strip("-")
    attempt = name
    while len(attempt) > NAME_LENGTH or attempt in taken:
        text += " "
        attempt = f"{name[: NAME_LENGTH - 7]}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"
    return attempt


def comment_block(lines: Iterable[str]) -> str:
    """Comments of YAML and of shells. Names of the request cannot end them, because each is on one line."""
    return "".join("# " + "".join(c if c.isprintable() else " " for c in line) + "\n" for line in lines)


def yaml_lines(value: Any, indent: str = "") -> Iterator[str]:
    """The lines of a value as block YAML. Keys are plain words."""
    for key, item in value.items() if isinstance(value, Mapping) else ((None, item) for item in value):
        start = indent + ("- " if key is None else f"{key}:")
        if not isinstance(item, (Mapping, list)) or not item:
            yield start + ("" if key is None else " ") + yaml_scalar(item)
        elif key is None:
            first, *rest = yaml_lines(item, indent + "  ")
            yield start + first.lstrip()
            yield from rest
        else:
            yield start
            yield from yaml_lines(item, indent + "  ")


def yaml_scalar(value: Any) -> str:
    """A word without quotes if no reader of YAML takes it for another type; else JSON, which is YAML, too."""
    plain = isinstance(value, str) and re.fullmatch(r"(--)?[a-z/][\w./-]*", value, re.I | re.A)
    return str(value) if plain and value.lower() not in YAML_WORDS else json.dumps(value)


YAML_WORDS = {"true", "false", "yes", "no", "on", "off", "y", "n", "null"}

for public in (command_lines, manifests):
    public.__module__ = "gpusched.serving"
