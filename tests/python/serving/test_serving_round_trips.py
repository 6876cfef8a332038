# SPDX-License-Identifier: Apache-2.0
"""Documents of the serving planner are read as what was written: requests of versions 1 and 2, and plans."""

from __future__ import annotations

import copy
import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import gpusched as gs
import numpy as np
import pytest
from gpusched import _core, serving
from gpusched._commands.serving import read_plan, read_request
from messages import refuses
from schemas import validator

TARGETS = [f"{latency}_p{percent}_s" for latency in ("ttft", "tpot") for percent in (50, 90, 99)]


def random_request(rng: np.random.Generator, version: int) -> dict[str, Any]:
    """Anything that a document of this version may hold; numbers with all their digits."""

    def some(chance: float) -> bool:
        return bool(rng.random() < chance)

    def number(low: float, high: float) -> float | int:
        return float(rng.uniform(low, high)) if some(0.7) else math.ceil(low)

    def targets() -> dict[str, float]:
        return {name: float(rng.uniform(0.01, 9)) for name in TARGETS if some(0.3)}

    def pick(names: list[str], low: int, high: int) -> list[str]:
        return [str(name) for name in rng.choice(names, rng.integers(low, high), replace=False)]

    gpus: dict[str, Any] = {}
    for name in pick(["H100", "A100", "4090", "L40S", "mine", "x-ray GPU '7'"], 1, 5):
        gpu: dict[str, Any] = {"available": int(rng.integers(0, 99))}
        if name == "mine":
            gpu |= {"type": "T4", "price": number(0, 9)}
        elif name == "x-ray GPU '7'":
            gpu |= {"tflops": number(9, 999), "bandwidth_gb_s": number(99, 9999)}
            gpu |= {"memory_gb": number(8, 99), "price": number(0, 9)}
        elif name == "L40S" or some(0.5):
            gpu["price"] = number(0, 9)
        if some(0.2):
            gpu |= {"per_machine": int(rng.integers(1, 17)), "link_gb_s": number(0, 900)}
            gpu["network_gb_s"] = number(0, 99)
        if version == 2 and some(0.4):
            gpu["machines"] = gpu.pop("available")
        if version == 2 and some(0.3):
            gpu |= {"spot_price": number(0, 5), "spot_available": int(rng.integers(1, 50))}
        if version == 2 and some(0.3):
            gpu["minimum"] = int(rng.integers(0, 20))
        gpus[name] = gpu
    rates = version == 2 and some(0.7)
    models: dict[str, Any] = {}
    for name in pick(["Llama-3-8B", "Llama-3-70B", "ours", "described"], 1, 4):
        workloads: dict[str, Any] = {}
        for kind in pick(["chat", "code", "long 'prompts'"], 0 if models else 1, 4):
            workloads[kind] = {"input": int(rng.integers(1, 9000)), "output": int(rng.integers(1, 2000))}
            workloads[kind]["rate" if rates else "requests"] = number(0.001, 500)
            if rates and some(0.3):
                workloads[kind]["targets"] = targets()
        models[name] = {"workloads": workloads}
        if name == "ours":
            models[name] |= {"type": "Llama-2-70B", "bytes_per_weight": 1.0}
        elif name == "described":
            models[name] |= {"layers": 24, "hidden": 2048, "heads": 16, "kv_heads": 4, "head_size": 128}
            models[name] |= {"intermediate": 5632, "vocabulary": 32000}
    request: dict[str, Any] = {"gpus": gpus, "models": models}
    if not rates or some(0.5):
        request["budget"] = number(0, 999)
    if version == 1 or some(0.5):
        request["version"] = version
    if some(0.5):
        request["format"] = "gpusched.serving-request"
    if rates and some(0.5):
        request["targets"] = targets()
    rows = [
        {"model": model, "workload": kind, "requests_per_s": number(0, 99)}
        | {"deployment": f"{gpu} {rng.integers(1, 3)}x1"}
        for gpu in gpus
        for model, served in models.items()
        for kind in served["workloads"]
        if some(0.2)
    ]
    if version == 2:
        for row in rows:
            row |= {name: float(rng.uniform(0.01, 2)) for name in ("ttft_s", "tpot_s") if some(0.3)}
    if rows or some(0.2):
        request["measured"] = rows
    return request


def test_requests_of_both_versions(tmp_path: Path) -> None:
    found: Counter[str] = Counter()
    schemas = {version: validator(f"serving-request.v{version}") for version in (1, 2)}
    for seed in range(150):
        rng = np.random.default_rng(seed)
        version = 1 if seed % 3 == 0 else 2
        request = random_request(rng, version)
        before = copy.deepcopy(request)
        schemas[version].validate(request)
        written = serving.request_to_dict(request)
        assert request == before and written["version"] == 2
        schemas[2].validate(written)
        # Read, written and read: the same request, from memory, JSON and YAML, of which JSON is a part.
        assert serving.request_to_dict(written) == written, seed
        text = json.dumps(written, allow_nan=False)
        for name in ("request.json", "request.yaml") if gs.io.reads_yaml() else ("request.json",):
            file = tmp_path / name
            file.write_text(text)
            assert serving.request_to_dict(read_request(str(file))) == written, seed
        # What the document says stands in it, whatever was added.
        for name, gpu in request["gpus"].items():
            for field in set(gpu) - {"type", "machines", "minimum"}:
                assert written["gpus"][name][field] == gpu[field], (seed, field)
            if "machines" in gpu:
                of = written["gpus"][name]
                assert of["available"] == gpu["machines"] * of["per_machine"]
        for name, served in request["models"].items():
            for kind, workload in served["workloads"].items():
                entry = written["models"][name]["workloads"][kind]
                both = request.get("targets", {}) | workload.get("targets", {})
                told = {k: v for k, v in workload.items() if k != "targets"}
                assert entry == told | ({"targets": both} if both else {}), seed
        assert written.get("measured", []) == request.get("measured", [])
        assert written.get("budget") == request.get("budget")
        if version == 1:
            # The same document without the number of its version says the same; what is new in version 2 is
            # refused in version 1.
            assert serving.request_to_dict({**request, "version": 2}) == written
            newer = copy.deepcopy(request)
            gpu = next(iter(newer["gpus"].values()))
            gpu["minimum"] = 8
            with refuses("/minimum: is a field of version 2; version 1"):
                serving.request_to_dict(newer)
        found[f"version {version}"] += 1
        found["rates"] += "rate" in text
        found["measured"] += bool(request.get("measured"))
        found["targets"] += "targets" in text
        found["spot"] += "spot_price" in text
    assert min(found.values()) >= 20, found


def test_a_request_and_its_document_have_the_same_plan() -> None:
    if not gs.milp.available_solvers():
        pytest.skip("no solver")
    chat = {"input": 496, "output": 510}
    rates = {"chat": {**chat, "rate": 20, "targets": {"tpot_p99_s": 0.1}}}
    request = {
        "gpus": {
            "H100": {"machines": 2, "price": 3.0, "spot_price": 1.5, "spot_available": 8},
            "A40": {"available": 16, "minimum": 4},
        },
        "models": {"Llama-3-8B": {"workloads": rates}},
        "targets": {"ttft_p90_s": 1.0},
    }
    batch = {
        "version": 1,
        "budget": 6,
        "gpus": {"H100": {"available": 4}, "A40": {"available": 8, "price": 0.6}},
        "models": {"Llama-3-8B": {"workloads": {"chat": {**chat, "requests": 300}}}},
    }
    for asked in (request, batch):
        written = serving.request_to_dict(asked)
        assert serving.plan_serving(written) == serving.plan_serving(asked)


def test_plans_of_both_versions(tmp_path: Path) -> None:
    if not gs.milp.available_solvers():
        pytest.skip("no solver")
    for seed in range(6):
        rng = np.random.default_rng(seed)
        rates = seed % 2 == 0
        load = "rate" if rates else "requests"
        kinds = {}
        for kind in ("chat", "code"):
            lengths = int(rng.integers(100, 2000)), int(rng.integers(20, 500))
            kinds[kind] = dict(zip(("input", "output"), lengths))
            kinds[kind][load] = float(rng.uniform(1, 30))
        asked = {
            "budget": 60,
            "gpus": {"H100": {"available": 8}, "A100": {"available": 8}, "L40": {"available": 16}},
            "models": {"Llama-3-8B": {"workloads": kinds}},
        }
        plan = serving.plan_serving(asked)
        document = json.loads(json.dumps(serving.plan_to_dict(plan), allow_nan=False))
        validator("serving-plan.v2").validate(document)
        assert document["replicas"] == plan.replicas and document["cost"] == plan.cost
        # A plan as version 1 had it.
        schema = validator("serving-plan.v1").schema
        first = {key: value for key, value in document.items() if key in schema["properties"]}
        known = schema["$defs"]["replicas"]["properties"]
        groups = [{k: v for k, v in group.items() if k in known} for group in document["replicas"]]
        first |= {"version": 1, "replicas": groups}
        validator("serving-plan.v1").validate(first)
        for written in (document, first):
            file = tmp_path / "plan.json"
            file.write_text(json.dumps(written))
            running = read_plan(str(file))
            _core.serving._require_running(running)
            kept = serving.replan(asked, running)
            assert (kept.starts, kept.stops) == (0, 0), seed
            assert kept.plan.replicas == serving.replan(asked, plan).plan.replicas
