# SPDX-License-Identifier: Apache-2.0
"""The inputs of arXiv 2502.00722: GPU types, availabilities, traces and kinds of requests.

They are in Table 1, Table 4, Table 5 and section 3. Two of them have two readings; each is an option of every
benchmark with this setting:

  --gpus   dense         the types and prices of Table 1 with dense 16-bit tensor-core peaks and the
bandwidths of data sheets printed       Table 1 as printed: the peak of H100 counts sparsity, those of A6000
and 4090 are not the tensor cores' --kinds  input-major   kind 1 is (2455, 18), kind 2 (2455, 253); Table 5
numbers its columns without naming the kinds output-major  kind 1 is (2455, 18), kind 2 (824, 18)
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpusched import serving

NAMES = ("4090", "A40", "A6000", "L40", "A100", "H100")  # Table 4's order
THREE = ("H100", "A6000", "4090")
"""The homogeneous baselines of the paper."""
AVAILABLE = ((16, 12, 8, 12, 6, 8), (32, 8, 16, 16, 7, 12), (32, 16, 8, 8, 32, 8), (24, 24, 24, 16, 4, 8))
TRACES = (  # Table 5, percent
    (33, 7, 8, 7, 27, 6, 6, 3, 3),
    (22, 5, 5, 21, 5, 5, 19, 6, 12),
    (4, 1, 4, 3, 20, 27, 1, 25, 15),
)
INPUTS, OUTPUTS = (2455, 824, 496), (18, 253, 510)
GPUS = {"dense": serving.paper_gpus_dense, "printed": serving.paper_gpus}
KINDS = {
    "input-major": tuple((i, o) for i in INPUTS for o in OUTPUTS),
    "output-major": tuple((i, o) for o in OUTPUTS for i in INPUTS),
}
LLAMA_30B = {
    "layers": 60, "hidden": 6656, "heads": 52, "kv_heads": 52, "head_size": 128, "intermediate": 17920,
    "vocabulary": 32000,
}  # fmt: skip
UNKNOWN: dict[str, dict[str, int]] = {"Llama-1-30B": LLAMA_30B}
"""Shapes of models that the library does not know by name."""


def language_model(name: str) -> serving.LanguageModel:
    return serving.language_model(name, **UNKNOWN.get(name, {}))


@dataclass(frozen=True)
class Setting:
    gpus: Mapping[str, serving.GpuType]
    shapes: tuple[tuple[int, int], ...]
    """Tokens in and out of kinds 1 to 9."""

    @property
    def types(self) -> list[serving.GpuType]:
        return [self.gpus[name] for name in NAMES]

    def gpu(self, name: str, available: int) -> dict[str, Any]:
        known = self.gpus[name]
        fields = (
            "tflops",
            "bandwidth_gb_s",
            "memory_gb",
            "link_gb_s",
            "network_gb_s",
            "per_machine",
            "price",
        )
        return {"available": available, **{field: getattr(known, field) for field in fields}}

    def model(self, name: str, shares: Sequence[float], requests: float = 1000) -> dict[str, Any]:
        """The entry of a request for a model with these shares of the nine kinds."""
        kinds = {
            f"w{w + 1}": {"input": i, "output": o, "requests": requests * share / sum(shares)}
            for w, ((i, o), share) in enumerate(zip(self.shapes, shares))
        }
        return {name: {**UNKNOWN.get(name, {}), "workloads": kinds}}

    def request(
        self, models: dict[str, Any], available: Sequence[int], budget: float, types: Sequence[str] = NAMES
    ) -> Any:
        gpus = {name: self.gpu(name, count) for name, count in zip(NAMES, available) if name in types}
        return {"budget": budget, "gpus": gpus, "models": models}

    def affordable(self, budget: float) -> tuple[int, ...]:
        return tuple(int(budget / self.gpus[name].price + 1e-9) for name in NAMES)

    def surge(self, shares: Sequence[float]) -> tuple[float, ...]:
        """Three times as many requests with short outputs."""
        return tuple(
            3.0 * share if output == min(OUTPUTS) else float(share)
            for share, (_, output) in zip(shares, self.shapes)
        )


def setting(gpus: str = "dense", kinds: str = "input-major") -> Setting:
    return Setting({gpu.name: gpu for gpu in GPUS[gpus]()}, KINDS[kinds])


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--gpus", choices=list(GPUS), default="dense", help="peaks and bandwidths (dense)")
    parser.add_argument(
        "--kinds",
        choices=list(KINDS),
        default="input-major",
        help="order of the kinds in Table 5 (input-major)",
    )


def chosen(args: argparse.Namespace) -> Setting:
    return setting(args.gpus, args.kinds)
