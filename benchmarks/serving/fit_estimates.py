#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits the coefficients of step_model.py to measurements of serving engines, and shows its errors.

    python benchmarks/serving/fit_estimates.py [DATA] [--write] [--drop]
    python benchmarks/serving/fit_estimates.py --tables

DATA is the folder with silicon/silicon_train.csv (default: GPUSCHED_DATA or ../shared/data). --write replaces
estimates/coefficients.json and what follows from estimates/: src/serving/engine_tables.cpp and the table of errors
in docs/serving-predict.md. --tables replaces only these, without data. --drop fits again without each term of the
model and prints the errors.

Errors are of points left out: all points of a configuration (model, GPU, engine, precision, degrees, mode), or of a
model on a GPU. The coefficients without them are one Gauss-Newton step from the full fit. Needs numpy.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import step_model

HERE = Path(__file__).resolve().parent / "estimates"
MODELS = json.loads((HERE / "models.json").read_text())
GPUS = json.loads((HERE / "gpus.json").read_text())
MODEL_OF = {name: model for model, shape in MODELS.items() for name in shape["names"]}
SHAPE = (
    "layers hidden heads kv_heads head_size intermediate vocabulary bytes_per_weight bytes_per_kv gated experts top_k "
    "moe_intermediate shared_experts first_dense q_lora_rank kv_lora_rank rope_size nope_size value_size window "
    "window_layers linear_layers linear_key_heads linear_value_heads linear_size index_heads index_size index_top_k"
).split()
GPU_FIELDS = ("bandwidth", "bf16", "fp8", "fp4", "memory", "link", "network", "linked")
PARAMETER_BYTES = {"bf16": 2.0, "fp8": 1.0, "fp4": 0.5625, "int4": 0.5625}  # 4 bits and scales
PEAK = {"bf16": "bf16", "fp8": "fp8", "fp4": "fp4", "int4": "bf16"}

# Coefficients vary by these keys of a point. A spread is the standard deviation of the logarithm of the factor.
VARIES = {
    "gemm_bandwidth": {"engine": 0.06},
    "gemm_compute": {"family": 0.1},
    "expert_compute": {"engine": 0.25, "family": 0.25},
    "cache_bandwidth": {"engine": 0.25},
    "attention_compute": {"engine": 0.25},
    "token_bandwidth": {"family": 0.3, "kind release": 0.3},
    "link": {"kind release family": 0.4},
    "layer_s": {"engine family": 0.3, "attention": 0.3, "engine attention": 0.2},
    "expert_layer_s": {"engine family precision": 0.3},
    "collective_s": {"engine family": 0.3},
    "step_s": {"engine": 0.5},
    "interference": {"release": 0.3},
    "request_s": {"release": 0.5},
    "start": {"release": 1.2},
    "stream": {"release": 0.7, "engine attention family precision": 0.5},
}
SPREAD = {  # of the value itself; 0.7 if absent
    "gemm_bandwidth": 0.15, "gemm_compute": 0.1, "expert_bandwidth": 0.2, "cache_bandwidth": 0.3,
    "attention_compute": 0.3, "token_bandwidth": 0.4, "link": 0.1, "memory": 0.02, "request_s": 1.0,
    "stream": 1.0,
}  # fmt: skip
# Scales of the logarithmic residuals (token time, first token): wide at first, then so that outliers hardly count.
SCALES = ((0.6, 1.0), (0.15, 0.25))
TERMS = {  # with values that make a term vanish
    "fixed time of layers": {"layer_s": 1e-9, "expert_layer_s": 1e-9},
    "fixed time of collectives": {"collective_s": 1e-9},
    "transfer of collectives": {"link": 1e3},
    "fixed time of steps": {"step_s": 1e-9},
    "cache reads": {"cache_bandwidth": 1e3},
    "attention of prompts": {"attention_compute": 1e3},
    "work per token": {"token_bandwidth": 1e3},
    "interference of prompts": {"interference": 1e-4},
    "tokens sent together": {"stream": 1e-3},
    "burst at the start": {"start": 1e-4},
    "time outside the engine": {"request_s": 1e-5, "transfer_s": 1e-5},
    "limit of memory": {"memory": 1e3},
}
KEYS = ("kind", "engine", "release", "family", "attention", "precision")  # on which coefficients depend
CELL = ("kind", "family", "engine", "precision")
LEAST, LEAST_CONFIGURATIONS = 30, 10  # points and configurations of a cell with bands of its own
ATTRIBUTION = (
    "Fitted to silicon_sample.csv of github.com/ai-dynamo/aiconfigurator (aiconfigurator-core 0.12.0), "
    "Copyright (c) NVIDIA CORPORATION & AFFILIATES, Apache-2.0; no row of the table is contained."
)

ROOT = HERE.parents[2]
TABLES, PAGE = ROOT / "src" / "serving" / "engine_tables.cpp", ROOT / "docs" / "serving-predict.md"
MARKS = "<!-- errors: written by benchmarks/serving/fit_estimates.py -->", "<!-- end of errors -->"
CPP = """\
// SPDX-License-Identifier: Apache-2.0
// Models, GPUs and coefficients of the model of an engine step. Written by
// benchmarks/serving/fit_estimates.py --tables from benchmarks/serving/estimates; do not edit.
//
// {attribution}
#include "serving/engine_tables.hpp"

namespace gpusched::serving::detail {{

// clang-format off

const std::vector<KnownModel>& known_models() {{
    static const std::vector<KnownModel> models{{
{models}
    }};
    return models;
}}

const std::vector<KnownGpu>& known_gpus() {{
    static const std::vector<KnownGpu> gpus{{
{gpus}
    }};
    return gpus;
}}

const Coefficients& base_coefficients() {{
    static constexpr Coefficients values{{
{values}
    }};
    return values;
}}

static constexpr CoefficientFactor factor_table[] = {{
{factors}
}};

std::span<const CoefficientFactor> coefficient_factors() {{ return factor_table; }}

static constexpr CellError error_table[] = {{
{errors}
}};

std::span<const CellError> cell_errors() {{ return error_table; }}

// clang-format on

}}  // namespace gpusched::serving::detail
"""


@dataclass(frozen=True)
class Degrees:
    """Degrees of attention (tensor, data) and of experts; each pair multiplies to the number of GPUs."""

    tensor: int = 1
    data: int = 1
    expert: int = 1
    expert_tensor: int = 1


@dataclass(frozen=True)
class Point:
    """A measurement. `replica` prefills and decodes; else it is the prefill worker, and `decode` decodes."""

    model: str
    system: str
    engine: str
    release: str
    precision: str
    mode: str
    replica: Degrees
    decode: Degrees
    workers: tuple[int, int]
    concurrency: float
    input: float
    output: float
    first_s: float
    token_s: float

    @property
    def kind(self) -> str:
        return "moe" if MODELS[self.model].get("experts") else "dense"

    @property
    def attention(self) -> str:
        """Kind of attention, which decides on the number of small kernels."""
        shape = MODELS[self.model]
        names = {"index_top_k": "sparse", "linear_layers": "linear", "kv_lora_rank": "latent"}
        return next((name for field, name in names.items() if shape.get(field)), "grouped")

    @property
    def family(self) -> str:
        return GPUS[self.system]["family"]

    @property
    def configuration(self) -> tuple:
        return (self.model, self.system, self.engine, self.precision, self.mode, self.replica, self.decode)

    def key(self, names: str) -> str:
        return " ".join(getattr(self, name) for name in names.split())


def fitted_coefficients(points: list[Point]) -> SimpleNamespace:
    """The coefficients of each point, as in estimates/coefficients.json."""
    fitted = json.loads((HERE / "coefficients.json").read_text())["coefficients"]
    found: dict[str, np.ndarray] = {}
    for name, entry in fitted.items():
        factors = [[values.get(p.key(keys), 1.0) for keys, values in entry["factors"].items()] for p in points]
        found[name] = entry["value"] * np.array([np.prod(row) for row in factors])
    return SimpleNamespace(**found)


def release(engine: str, version: str) -> str:
    """The engine, or its name for releases before a change of its defaults."""
    change = {"trtllm": (1, 1), "vllm": (0, 13), "sglang": (0, 5, 2)}[engine]
    numbers = tuple(int(n) for n in re.findall(r"\d+", version)[:3])
    server = engine == "trtllm" and numbers[:1] == (0,)  # the version of the server around the engine
    return f"{engine}-old" if numbers and numbers < change and not server else engine


def number(row: dict[str, str], name: str) -> int:
    return max(1, int(float(row[name] or 1)))


def degrees(row: dict[str, str], prefix: str, sparse: bool) -> Degrees:
    tensor, data = number(row, prefix + "tp_size"), number(row, prefix + "attention_dp_size")
    expert, expert_tensor = number(row, prefix + "moe_ep_size"), number(row, prefix + "moe_tp_size")
    gpus = tensor * data
    # Two of the sources list n GPUs with expert parallelism as n x n.
    if not prefix and expert > 1 and re.match("db-dump|source_file=2026-04-06", row["silicon_data_source"]):
        gpus = expert = expert_tensor if expert_tensor == expert else round(expert**0.5)
        tensor, data = (1, gpus) if data > 1 else (gpus, 1)
    expert = min(expert, gpus) if sparse else 1
    return Degrees(tensor, data, expert, gpus // expert if sparse else 1)


def read(path: Path) -> list[Point]:
    """The distinct measurements whose deployment is known.

    Left out: rows that repeat a measurement, disaggregated rows without numbers of workers, and aggregated rows that
    list the GPUs of several workers as one tensor-parallel group.
    """
    points: dict[tuple, Point] = {}
    for row in csv.DictReader(path.open()):
        model, engine = MODEL_OF[row["model_path"]], row["backend"]
        sparse, apart = bool(MODELS[model].get("experts")), row["mode"] == "disagg"
        named = re.search(r"_c(\d+)_", row["id"])
        concurrency = float(named[1]) if named else 0.0
        if apart:
            if not row["prefill_num_workers"]:
                continue
            sides = [degrees(row, side, sparse) for side in ("prefill_", "decode_")]
            workers = number(row, "prefill_num_workers"), number(row, "decode_num_workers")
            concurrency = concurrency or number(row, "decode_batch_size") * workers[1]
        else:
            if number(row, "tp_size") > 8 and number(row, "moe_ep_size") == 1:
                continue
            sides, workers = [degrees(row, "", sparse), Degrees()], (1, 1)
            if not concurrency or "/Users/" in row["silicon_data_source"]:  # its concurrency is of all replicas
                concurrency = float(row["batch_size"])
        first, token = float(row["silicon_ttft_ms"]) / 1e3, float(row["silicon_tpot_ms"]) / 1e3
        point = Point(
            model, row["system"], engine, release(engine, row["backend_version"]), row["precision"] or "bf16",
            row["mode"], *sides, workers, concurrency, float(row["isl"]), float(row["osl"]), first, token,
        )  # fmt: skip
        points.setdefault((row["mode"], first, token, row["isl"], row["osl"]), point)
    return list(points.values())


def replica(points: list[Point], side: str, gpu: SimpleNamespace) -> SimpleNamespace:
    """Degrees and number formats. Attention differs in some 4-bit checkpoints, see models.json."""
    values = {f: np.array([getattr(getattr(p, side), f) for p in points], float) for f in Degrees.__annotations__}
    for matrices in ("attention", "mlp", "expert"):
        formats = [
            MODELS[p.model].get("attention_formats", {}).get(p.precision, p.precision)
            if matrices == "attention"
            else p.precision
            for p in points
        ]
        values[f"{matrices}_bytes"] = np.array([PARAMETER_BYTES[f] for f in formats])
        values[f"{matrices}_peak"] = np.array([getattr(gpu, PEAK[f])[i] for i, f in enumerate(formats)])
    values["cache_bytes"] = np.array([2.0 if p.precision == "bf16" else 1.0 for p in points])
    return SimpleNamespace(**values)


def pick(values: SimpleNamespace, rows: np.ndarray) -> SimpleNamespace:
    return SimpleNamespace(**{name: value[rows] for name, value in vars(values).items()})


class Fit:
    """Coefficients as logarithms: of the values, then of the factors of each key."""

    def __init__(self, points: list[Point], fixed: dict[str, float] | None = None) -> None:
        self.points = points
        self.names: list[tuple[str, str, str]] = []  # coefficient, keys, key
        self.members: list[np.ndarray] = []
        start, spread = [], []
        fixed = fixed or {}
        for name, (value, _, _) in step_model.COEFFICIENTS.items():
            held = name in fixed
            self.names.append((name, "", ""))
            self.members.append(np.ones(len(points)))
            start.append(np.log(fixed.get(name, value)))
            spread.append(1e-6 if held else SPREAD.get(name, 0.7))
            for keys, width in ({} if held else VARIES.get(name, {})).items():
                of = np.array([p.key(keys) for p in points])
                for key in sorted(set(of)):
                    self.names.append((name, keys, key))
                    self.members.append((of == key).astype(float))
                    start.append(0.0)
                    spread.append(width)
        self.start, self.spread = np.array(start), np.array(spread)
        self.membership = np.array(self.members).T
        self.column = {name: np.array([n[0] == name for n in self.names]) for name in step_model.COEFFICIENTS}

        model = SimpleNamespace(**{f: np.array([MODELS[p.model].get(f, 0) for p in points], float) for f in SHAPE})
        gpu = SimpleNamespace(**{f: np.array([GPUS[p.system][f] for p in points], float) for f in GPU_FIELDS})
        self.inputs = model, gpu, replica(points, "replica", gpu), replica(points, "decode", gpu)
        self.apart = np.array([p.mode == "disagg" for p in points])
        self.load = np.array([(p.concurrency, *p.workers, p.input, p.output) for p in points]).T
        self.measured = np.log([[p.token_s for p in points], [p.first_s for p in points]])

    def coefficients(self, x: np.ndarray) -> SimpleNamespace:
        logs = self.membership * x
        return SimpleNamespace(**{name: np.exp(logs[:, c].sum(1)) for name, c in self.column.items()})

    def estimate(self, c: SimpleNamespace, rows: np.ndarray) -> np.ndarray:
        """Seconds per token and to the first token of the points `rows`; c holds the coefficients of all."""
        result = np.empty((2, len(rows)))
        for apart in (False, True):
            chosen = self.apart[rows] == apart
            at = rows[chosen]
            if at.size:
                m, g, r, d = (pick(values, at) for values in self.inputs)
                concurrency, prefill, decode, tokens_in, tokens_out = self.load[:, at]
                arguments = (m, g, r, d) if apart else (m, g, r)
                workers = (prefill, decode) if apart else ()
                model = step_model.disaggregated if apart else step_model.aggregated
                first, token = model(*arguments, pick(c, at), concurrency, *workers, tokens_in, tokens_out)
                result[:, chosen] = token, first
        return result

    @property
    def all(self) -> np.ndarray:
        return np.arange(len(self.points))

    def residuals(self, x: np.ndarray) -> np.ndarray:
        return np.log(self.estimate(self.coefficients(x), self.all)) - self.measured

    def derivatives(self, x: np.ndarray) -> np.ndarray:
        """Derivatives of the residuals, [output, point, coefficient]; a point sees one value of a coefficient."""
        c, step = self.coefficients(x), 1e-4
        base = np.log(self.estimate(c, self.all))
        slopes = np.empty((2, len(self.points), len(x)))
        for name, column in self.column.items():
            value = getattr(c, name)
            setattr(c, name, value * np.exp(step))
            slope = (np.log(self.estimate(c, self.all)) - base) / step
            setattr(c, name, value)
            slopes[:, :, column] = slope[:, :, None] * self.membership[:, column]
        return slopes

    def loss(self, residuals: np.ndarray, x: np.ndarray, scales: np.ndarray) -> float:
        """Cauchy's loss, because some rows hide speculative decoding or limits of the engine."""
        return np.log1p((residuals / scales) ** 2).sum() / 2 + (((x - self.start) / self.spread) ** 2).sum() / 2

    @staticmethod
    def normal_equations(residuals: np.ndarray, slopes: np.ndarray, scales: np.ndarray) -> tuple:
        """The share of these points in the matrix and gradient of a Gauss-Newton step, reweighted for the loss."""
        weights = 1 / (scales**2 + residuals**2)
        matrix = np.einsum("op,opi,opj->ij", weights, slopes, slopes, optimize=True)
        return matrix, np.einsum("op,op,opi->i", weights, residuals, slopes, optimize=True)

    def solve(self, x: np.ndarray, steps: int, scales: tuple[float, float]) -> np.ndarray:
        """Levenberg-Marquardt with reweighted residuals."""
        scale, damping, prior = np.array(scales)[:, None], 1e-2, np.diag(self.spread**-2)
        residuals = self.residuals(x)
        loss = self.loss(residuals, x, scale)
        for _ in range(steps):
            matrix, gradient = self.normal_equations(residuals, self.derivatives(x), scale)
            matrix, gradient = matrix + prior, gradient + (x - self.start) / self.spread**2
            for _ in range(6):
                step = np.linalg.solve(matrix + damping * np.diag(np.diag(matrix)), -gradient)
                trial = x + np.clip(step, -0.7, 0.7)
                trial_residuals = self.residuals(trial)
                trial_loss = self.loss(trial_residuals, trial, scale)
                if trial_loss < loss:
                    break
                damping *= 6
            else:
                return x
            gain, x, residuals, loss = loss - trial_loss, trial, trial_residuals, trial_loss
            damping = max(damping / 5, 1e-6)
            if gain < 1e-4 * loss:
                break
        return x

    def fit(self, x: np.ndarray | None = None, steps: int = 12) -> np.ndarray:
        if x is None:
            x = self.solve(self.start, steps, SCALES[0])
        return self.solve(x, 2 * steps, SCALES[1])

    def left_out(self, x: np.ndarray, groups: list) -> np.ndarray:
        """Residuals of each group under the coefficients without it: one Gauss-Newton step from x."""
        scale = np.array(SCALES[1])[:, None]
        residuals, slopes = self.residuals(x), self.derivatives(x)
        matrix, total = self.normal_equations(residuals, slopes, scale)
        matrix, total = matrix + np.diag(self.spread**-2), total + (x - self.start) / self.spread**2
        result = np.empty_like(residuals)
        members: dict = {}
        for row, group in enumerate(groups):
            members.setdefault(group, []).append(row)
        for rows in map(np.array, members.values()):
            share, slope = self.normal_equations(residuals[:, rows], slopes[:, rows], scale)
            moved = x + np.clip(np.linalg.solve(matrix - share, slope - total), -0.7, 0.7)
            result[:, rows] = np.log(self.estimate(self.coefficients(moved), rows)) - self.measured[:, rows]
        return result


def rates(points: list[Point], residuals: np.ndarray) -> np.ndarray:
    """Adds the residuals of requests per second: (token time, first token, requests per second)."""
    token, first = np.array([[p.token_s for p in points], [p.first_s for p in points]])
    output = np.array([p.output for p in points])
    estimated = first * np.exp(residuals[1]) + output * token * np.exp(residuals[0])
    return np.vstack([residuals, np.log((first + output * token) / estimated)])


OUTPUTS = ("token_time", "first_token", "requests_per_s")


def cells(points: list[Point]) -> dict[tuple[str, ...], np.ndarray]:
    """Rows by cell: the full cell, and each coarser one, which has fewer keys."""
    found: dict[tuple[str, ...], list[int]] = {}
    for row, p in enumerate(points):
        for n in range(len(CELL) + 1):
            found.setdefault(tuple(getattr(p, name) for name in CELL[:n]), []).append(row)
    return {cell: np.array(rows) for cell, rows in found.items()}


def bands(points: list[Point], residuals: np.ndarray) -> list[dict]:
    """10th, 50th and 90th percentile of measured / estimated in each cell with enough points."""
    result = []
    for cell, rows in sorted(cells(points).items()):
        if not cell or (len(rows) >= LEAST and len({points[r].configuration for r in rows}) >= LEAST_CONFIGURATIONS):
            factors = np.exp(-np.quantile(residuals[:, rows], [0.9, 0.5, 0.1], axis=1)).T
            entry = {"cell": " ".join(cell), "n": len(rows)}
            result.append(entry | {o: [round(f, 3) for f in three] for o, three in zip(OUTPUTS, factors)})
    return result


def coverage(points: list[Point], residuals: np.ndarray) -> np.ndarray:
    """Whether each point lies in the band of its cell, made without its configuration. [output, point]"""
    configurations = np.array([hash(p.configuration) for p in points])
    by_cell, inside = cells(points), np.empty(residuals.shape, bool)
    for configuration in set(configurations):
        rows = np.flatnonzero(configurations == configuration)
        for row in rows:
            values = [getattr(points[row], name) for name in CELL]
            for n in range(len(CELL), -1, -1):
                others = by_cell[tuple(values[:n])]
                others = others[configurations[others] != configuration]
                if len(others) >= LEAST and len(set(configurations[others])) >= LEAST_CONFIGURATIONS:
                    break
            low, high = np.quantile(residuals[:, others], [0.1, 0.9], axis=1)
            inside[:, row] = (residuals[:, row] >= low) & (residuals[:, row] <= high)
    return inside


def show(title: str, points: list[Point], residuals: np.ndarray, keys: str, inside: np.ndarray | None = None) -> None:
    print(f"\n{title}; by {keys}: median and 90th percentile of |estimate / measurement - 1|, share within 35 %")
    groups: dict[str, list[int]] = {}
    for row, p in enumerate(points):
        groups.setdefault(p.key(keys), []).append(row)
    for group, rows in sorted(groups.items()):
        token, first = np.abs(np.expm1(residuals[:2, rows]))
        line = f"{group:<44} {len(rows):>5}  token {np.median(token):6.1%} {np.quantile(token, 0.9):6.1%} "
        line += f"{np.mean(token <= 0.35):6.1%}  first {np.median(first):6.1%} {np.quantile(first, 0.9):6.1%}"
        if inside is not None:
            line += "  in band" + "".join(f" {share:4.0%}" for share in inside[:, rows].mean(1))
        print(line)


def document(fit: Fit, x: np.ndarray, errors: list[dict]) -> dict:
    coefficients: dict[str, dict] = {}
    for (name, keys, key), log in zip(fit.names, x):
        value = float(f"{np.exp(log):.4g}")
        if not keys:
            _, unit, meaning = step_model.COEFFICIENTS[name]
            coefficients[name] = {"value": value, "unit": unit, "meaning": meaning, "factors": {}}
        else:
            coefficients[name]["factors"].setdefault(keys, {})[key] = value
    return {"attribution": ATTRIBUTION, "coefficients": coefficients, "cell": " ".join(CELL), "errors": errors}


def c_number(value: float) -> str:
    return f"{value:g}" if abs(value) < 1e5 else f"{value:.10g}"


def c_text(value: str) -> str:
    return json.dumps(value)


def c_list(values: list[str]) -> str:
    return "{" + ", ".join(map(c_text, values)) + "}"


def cpp_tables(coefficients: dict) -> str:
    """The source of the library with everything in estimates/."""
    models, gpus, factors, errors = [], [], [], []
    for name, m in MODELS.items():
        fields = [f".name = {c_text(name)}"]
        fields += [f".{f} = {'true' if f == 'gated' else c_number(m[f])}" for f in SHAPE if m.get(f)]
        fields += [f".attention_of_{f} = Precision::{a}" for f, a in m.get("attention_formats", {}).items()]
        shape = ",\n          ".join(fields + [f".source = {c_text(m['source'])}"])
        models.append(f"        {{{c_list(m['names'])},\n         {{{shape}}}}},")
    for name, g in GPUS.items():
        numbers = ", ".join(c_number(g[f]) for f in GPU_FIELDS)
        names = c_list([*g["names"], name])
        gpu = f"{{{c_text(g['family'])}, {numbers}}}"
        gpus.append(f"        {{{names}, {json.dumps(g['measured'])}, {gpu},\n         {c_text(g['source'])}}},")
    for name, entry in coefficients["coefficients"].items():
        for keys, values in entry["factors"].items():
            for key, factor in values.items():
                pairs = dict(zip(keys.split(), key.split()))
                which = ", ".join(f".{k} = {c_text(pairs[k])}" for k in KEYS if k in pairs)
                factors.append(f"    {{&Coefficients::{name}, {{{which}}}, {c_number(factor)}}},")
    for e in coefficients["errors"]:
        bands = ", ".join(f"{c_number(e[o][0])}, {c_number(e[o][2])}" for o in OUTPUTS)
        errors.append(f"    {{{c_text(e['cell'])}, {e['n']}, {bands}}},")
    values = "\n".join(
        f"        .{name} = {c_number(entry['value'])},  // {entry['meaning']}, {entry['unit']}"
        for name, entry in coefficients["coefficients"].items()
    )
    return CPP.format(
        attribution=coefficients["attribution"].replace("; ", ";\n// ").replace(", Copyright", ",\n// Copyright"),
        models="\n".join(models), gpus="\n".join(gpus), values=values,
        factors="\n".join(factors), errors="\n".join(errors),
    )  # fmt: skip


def error_table(coefficients: dict) -> str:
    """The errors by cell as a table of the docs."""
    rows = ["| cell | n | time per token | first token | requests/s |", "|---|---|---|---|---|"]
    for e in coefficients["errors"]:
        bands = " | ".join("{0:.2f} to {2:.2f} ({1:.2f})".format(*e[o]) for o in OUTPUTS)
        rows.append(f"| {e['cell'] or 'all'} | {e['n']:,} | {bands} |")
    return "\n".join(rows)


def with_error_table(page: str, coefficients: dict) -> str:
    before, _, rest = page.partition(MARKS[0] + "\n")
    return before + MARKS[0] + "\n\n" + error_table(coefficients) + "\n\n" + MARKS[1] + rest.partition(MARKS[1])[2]


def write_tables(coefficients: dict) -> None:
    TABLES.write_text(cpp_tables(coefficients))
    PAGE.write_text(with_error_table(PAGE.read_text(), coefficients))
    print(f"\nwrote {TABLES.name} and {PAGE.name}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    parser.add_argument("data", nargs="?", type=Path, default=Path(os.environ.get("GPUSCHED_DATA", beside)))
    parser.add_argument("--write", action="store_true", help="replace estimates/coefficients.json")
    parser.add_argument("--tables", action="store_true", help="replace only the tables made from estimates/")
    parser.add_argument("--drop", action="store_true", help="fit again without each term")
    parser.add_argument("--smoke", action="store_true", help="few steps of the fit")
    options = parser.parse_args()
    if options.tables:
        write_tables(json.loads((HERE / "coefficients.json").read_text()))
        return 0
    table = options.data / "silicon" / "silicon_train.csv"
    if not table.is_file():
        print(f"{parser.prog}: no {table}: nothing is fitted", file=sys.stderr)
        return 0

    points = read(table)
    configurations = [p.configuration for p in points]
    fit = Fit(points)
    x = fit.fit(steps=1 if options.smoke else 12)
    print(f"{len(points)} points, {len(set(configurations))} configurations, {len(x)} coefficients and factors")
    show("All points in the fit", points, fit.residuals(x), "mode kind")
    residuals = rates(points, fit.left_out(x, configurations))
    inside = coverage(points, residuals)
    for keys in ("mode kind", "mode kind engine", "mode system", "mode model system engine"):
        show("One configuration left out", points, residuals, keys, inside)
    pairs = [(p.model, p.system) for p in points]
    show("A model on a GPU left out", points, fit.left_out(x, pairs), "mode kind")
    if options.drop:
        for term, fixed in TERMS.items():
            less = Fit(points, fixed)
            known = dict(zip(fit.names, x))
            start = np.array([known[n] for n in less.names])
            start[less.spread < 1e-5] = less.start[less.spread < 1e-5]
            y = less.fit(start, 4)
            show(f"Without {term}", points, less.left_out(y, configurations), "mode kind")
    if options.write:
        path = HERE / "coefficients.json"
        fitted = document(fit, x, bands(points, residuals))
        path.write_text(json.dumps(fitted, indent=1) + "\n")
        print(f"\nwrote {path.name}")
        write_tables(fitted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
