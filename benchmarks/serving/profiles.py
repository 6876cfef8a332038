# SPDX-License-Identifier: Apache-2.0
"""Public profiles for comparisons with estimates: their folder, and readers that two benchmarks share."""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from gpusched import serving

OPERATORS = (
    "input_layernorm attn_pre_proj attn_rope attn_post_proj post_attention_layernorm "
    "mlp_up_proj mlp_act mlp_down_proj add add"
).split()


def folder(description: str, without: str) -> Path | None:
    """The argument DATA. If it has no profiles, prints `without`, the consequence, and returns None."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    parser.add_argument(
        "data", nargs="?", type=Path, metavar="DATA", default=Path(os.environ.get("GPUSCHED_DATA", beside)),
        help="folder with profiles/ and splitwise-sim/; default: $GPUSCHED_DATA, or ../shared/data",
    )  # fmt: skip
    parser.add_argument("--smoke", action="store_true", help="no effect, because it is quick anyway")
    data = parser.parse_args().data
    if (data / "profiles").is_dir():
        return data
    print(f"{parser.prog}: no {data / 'profiles'}: {without}", file=sys.stderr)
    return None


class Layer(NamedTuple):
    """The operators of a layer, without attention and all-reduces."""

    degree: int
    tokens: int
    model: Any
    seconds: float


def layers(path: Path) -> Iterator[Layer]:
    """The complete rows of a table of operators (Vidur)."""
    for row in csv.DictReader(path.open()):
        values = [row[f"time_stats.{operator}.median"] for operator in OPERATORS]
        if "" in values:
            continue
        degree, heads, hidden = (int(row[n]) for n in ("num_tensor_parallel_workers", "n_head", "n_embd"))
        model = serving.language_model(
            "measured", layers=1, hidden=hidden, heads=heads, kv_heads=int(row["n_kv_head"]),
            head_size=hidden // heads, intermediate=int(row["n_expanded_embd"]), vocabulary=1,
        )  # fmt: skip
        yield Layer(degree, int(row["num_tokens"]), model, sum(map(float, values)) / 1e3)


SPLITWISE = {"a100-80gb": "A100-80GB", "h100-80gb": "H100"}


def splitwise_times(data: Path) -> dict[tuple[str, int, int, int, int], list[tuple[float, float]]]:
    """Milliseconds of the prompt and of a token, by (GPU, degree, prompt tokens, requests, output tokens)."""
    times: dict[Any, list[tuple[float, float]]] = defaultdict(list)
    with (data / "splitwise-sim/perf_model.csv").open() as file:
        for row in csv.DictReader(file):
            if row["model"] == "llama2-70b" and row["hardware"] in SPLITWISE:
                sizes = (int(row[n]) for n in ("tensor_parallel", "prompt_size", "batch_size", "token_size"))
                key = (SPLITWISE[row["hardware"]], *sizes)
                times[key].append((float(row["prompt_time"]), float(row["token_time"])))
    return times
