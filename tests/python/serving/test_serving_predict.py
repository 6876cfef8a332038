# SPDX-License-Identifier: Apache-2.0
"""gs.serving.predict: agreement with the Python model, names, configurations, errors and measurements."""

from __future__ import annotations

import copy
import json
import math
import os
import pickle
import random
import sys
from pathlib import Path
from typing import Any

import gpusched as gs
import pytest
from gpusched import serving
from messages import mentions, problems_in, refuses

np = pytest.importorskip("numpy")
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks" / "serving"))
import fit_estimates as fe  # noqa: E402

FITTED = json.loads((fe.HERE / "coefficients.json").read_text())
VERSION = {"trtllm-old": "1.0.0", "vllm-old": "0.12.0", "sglang-old": "0.5.1"}


def workers(degrees: fe.Degrees, number: int | None = None) -> dict[str, int]:
    parallel = {
        "tensor_parallel": degrees.tensor,
        "expert_parallel": degrees.expert,
        "attention_data_parallel": degrees.data,
    }
    return parallel if number is None else {"workers": number, **parallel}


def predict(p: fe.Point, version: str | None = None) -> serving.Prediction:
    load: dict[str, Any] = {
        "engine": p.engine, "precision": p.precision, "concurrency": int(p.concurrency), "input": int(p.input),
        "output": int(p.output), "engine_version": VERSION.get(p.release, "") if version is None else version,
    }  # fmt: skip
    if p.mode != "disagg":
        return serving.predict(p.model, p.system, **load, **workers(p.replica))
    prefill, decode = workers(p.replica, p.workers[0]), workers(p.decode, p.workers[1])
    return serving.predict_disaggregated(p.model, p.system, **load, prefill=prefill, decode=decode)


def random_point(rng: random.Random) -> fe.Point:
    model = rng.choice(list(fe.MODELS))
    sparse = bool(fe.MODELS[model].get("experts"))

    def degrees() -> fe.Degrees:
        tensor, data = rng.choice([1, 2, 4, 8]), rng.choice([1, 2, 4])
        expert = rng.choice([d for d in (1, 2, 4, 8) if tensor * data % d == 0]) if sparse else 1
        return fe.Degrees(tensor, data, expert, tensor * data // expert)

    engine = rng.choice(["vllm", "sglang", "trtllm"])
    return fe.Point(
        model, rng.choice(list(fe.GPUS)), engine, rng.choice([engine, engine + "-old"]),
        rng.choice(list(fe.PARAMETER_BYTES)), rng.choice(["agg", "disagg"]), degrees(), degrees(),
        (rng.randint(1, 5), rng.randint(1, 5)), float(rng.choice([1, 7, 64, 900])),
        float(rng.choice([1, 100, 1024, 30000])), float(rng.choice([1, 128, 8000])), 1.0, 1.0,
    )  # fmt: skip


def test_predict_agrees_with_the_python_model() -> None:
    rng = random.Random(5)
    points: list[fe.Point] = []
    found: list[serving.Prediction] = []
    while len(points) < 200:
        point = random_point(rng)
        if (prediction := predict(point)).fits:
            points.append(point)
            found.append(prediction)
    token, first = fe.Fit(points).estimate(fe.fitted_coefficients(points), np.arange(len(points)))
    assert [e.tpot_s for e in found] == pytest.approx(token, rel=1e-9)
    assert [e.ttft_s for e in found] == pytest.approx(first, rel=1e-9)
    for e, p in zip(found, points):
        assert sum(e.parts.values()) == pytest.approx(e.tpot_s)
        assert e.requests_per_s == pytest.approx(p.concurrency / (e.ttft_s + p.output * e.tpot_s))
        assert 0 < e.running <= p.concurrency and min(e.parts.values()) >= -1e-12


def test_errors_are_those_of_the_closest_cell() -> None:
    bands = {entry["cell"]: entry for entry in FITTED["errors"]}
    for model, gpu, engine, precision, cell in [
        ("Llama-3.1-8B", "H100", "vllm", "fp8", "dense hopper vllm"),
        ("Llama-3.1-8B", "B200", "vllm", "bf16", "dense blackwell"),
        ("Llama-3.1-8B", "A100", "vllm", "bf16", "dense"),
        ("MiniMax-M2.5", "GB300", "vllm", "fp4", "moe blackwell vllm fp4"),
        ("MiniMax-M2.5", "H200", "sglang", "fp8", "moe hopper"),
    ]:
        e = serving.predict(model, gpu, engine=engine, precision=precision, tensor_parallel=4)
        for name, output in (("ttft", "first_token"), ("tpot", "token_time"), ("requests_per_s",) * 2):
            band = getattr(e.error, name)
            low, _, high = bands[cell][output]
            assert (band.cell, band.n, band.low, band.high) == (cell, bands[cell]["n"], low, high)


def test_names_of_models_and_gpus() -> None:
    first = serving.predict("meta-llama/Llama-3.1-70B", "h200_sxm", tensor_parallel=2)
    assert first == serving.predict("llama-3.1-70b", "H200", tensor_parallel=2)
    assert first.gpus == 2 and first.fits and len(repr(first)) < 200
    assert first == pickle.loads(pickle.dumps(first)) == copy.deepcopy(first)
    assert mentions(problems_in(serving.predict, "meta-llama/Llama-3.1-70", "H100"), "meta-llama/Llama-3.1-70B")
    assert mentions(problems_in(serving.predict, "Llama-3.1-8B", "H300"), "gpu 'H300' H200")
    with refuses("engine 'tgi' vllm sglang trtllm"):
        serving.predict("Llama-3.1-8B", "H100", engine="tgi")  # type: ignore[arg-type]
    with refuses("prefill tensor_parallel 3"):
        serving.predict_disaggregated("Llama-3.1-8B", "H100", prefill={"tensor_parallel": 3})
    with pytest.raises(gs.InvalidInput):
        serving.predict_disaggregated("Llama-3.1-8B", "H100", prefill={"tensor": 2})


@pytest.mark.parametrize("model", [3, None, ["Llama-3.1-8B"], True])
def test_a_model_of_another_type_is_told_all_that_is_accepted(model: Any) -> None:
    for predict in (serving.predict, serving.predict_disaggregated):
        with refuses(f"model: {model!r}; known model Llama-3.1-8B config.json path dict"):
            predict(model, "H100")


def test_old_releases_have_their_own_coefficients() -> None:
    for engine, old, new in [
        ("vllm", "0.12.1", "0.13.0"),
        ("sglang", "0.5.1.post3", "0.5.2"),
        ("trtllm", "1.0.0rc3", "1.1.0"),
    ]:
        times = [
            serving.predict("Llama-3.1-8B", "H100", engine=engine, engine_version=version).ttft_s  # type: ignore[arg-type]
            for version in (old, new, "")
        ]
        assert times[0] != times[1] == times[2]


def test_a_model_that_does_not_fit_has_no_times() -> None:
    e = serving.predict("meta-llama/Llama-3.1-70B", "H100")
    assert not e.fits and math.isnan(e.ttft_s) and math.isnan(e.tpot_s) and e.parts == {}
    assert mentions(e.assumptions, "the replica does not fit 141.1 GB 85.5 GB")


CONFIGS = {
    "Llama-3.1-8B": {
        "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
        "intermediate_size": 14336, "vocab_size": 128256, "rope_theta": 500000.0,
    },
    "gpt-oss-120b": {
        "num_hidden_layers": 36, "hidden_size": 2880, "num_attention_heads": 64, "num_key_value_heads": 8,
        "head_dim": 64, "intermediate_size": 2880, "vocab_size": 201088, "num_local_experts": 128,
        "num_experts_per_tok": 4, "sliding_window": 128,
        "layer_types": ["sliding_attention", "full_attention"] * 18,
    },
    "DeepSeek-R1": {
        "num_hidden_layers": 61, "hidden_size": 7168, "num_attention_heads": 128, "num_key_value_heads": 128,
        "intermediate_size": 18432, "moe_intermediate_size": 2048, "vocab_size": 129280, "n_routed_experts": 256,
        "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 3, "moe_layer_freq": 1,
        "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128,
        "v_head_dim": 128,
    },
    "GLM-5": {
        "num_hidden_layers": 78, "hidden_size": 6144, "num_attention_heads": 64, "num_key_value_heads": 64,
        "intermediate_size": 12288, "moe_intermediate_size": 2048, "vocab_size": 154880, "n_routed_experts": 256,
        "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 3, "q_lora_rank": 2048,
        "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 192, "v_head_dim": 256,
        "index_n_heads": 32, "index_head_dim": 128, "index_topk": 2048,
    },
    "MiniMax-M2.5": {
        "num_hidden_layers": 62, "hidden_size": 3072, "num_attention_heads": 48, "num_key_value_heads": 8,
        "head_dim": 128, "intermediate_size": 1536, "vocab_size": 200064, "num_local_experts": 256,
        "num_experts_per_tok": 8, "sliding_window": None,
    },
    "Qwen3.5-397B-A17B": {
        "architectures": ["Qwen3_5MoeForConditionalGeneration"],
        "text_config": {
            "num_hidden_layers": 60, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 2,
            "head_dim": 256, "vocab_size": 248320, "num_experts": 512, "num_experts_per_tok": 10,
            "moe_intermediate_size": 1024, "shared_expert_intermediate_size": 1024, "attn_output_gate": True,
            "layer_types": [*["linear_attention"] * 3, "full_attention"] * 15, "linear_num_key_heads": 16,
            "linear_num_value_heads": 64, "linear_key_head_dim": 128, "full_attention_interval": 4,
        },
    },
}  # fmt: skip


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_describes_the_same_model_as_its_name(name: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"precision": "fp8", "tensor_parallel": 8, "engine": "sglang"}
    named = serving.predict(name, "B300", **options)
    assert serving.predict(CONFIGS[name], "B300", **options) == named
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS[name]))
    for path in (tmp_path, tmp_path / "config.json", str(tmp_path)):
        assert serving.predict(path, "B300", **options) == named
        assert serving.language_model(path).parameters == serving.language_model(name).parameters
    assert serving.language_model(CONFIGS[name]).parameters == serving.language_model(name).parameters
    assert serving.language_model(CONFIGS[name], bytes_per_weight=1).bytes_per_kv == 1


def test_bad_configs_name_every_problem() -> None:
    config = {**CONFIGS["DeepSeek-R1"], "hidden_size": 0, "vocab_size": "many"}
    del config["num_attention_heads"]
    problems = problems_in(serving.predict, config, "H200")
    for words in ("hidden_size 1 0", "vocab_size an integer", "num_attention_heads missing"):
        assert mentions(problems, words)
    with pytest.raises(gs.InvalidInput):
        serving.predict({**CONFIGS["gpt-oss-120b"], "interleave_moe_layer_step": 2}, "H200")


def test_predictions_reproduce_the_residuals_of_the_fit() -> None:
    data = Path(os.environ.get("GPUSCHED_DATA", fe.ROOT.parent / "shared" / "data"))
    table = data / "silicon" / "silicon_train.csv"
    if not table.is_file():
        pytest.skip(f"SKIPPED: no measurements at {table}; set GPUSCHED_DATA")
    points = fe.read(table)
    found = [predict(p) for p in points]
    assert all(e.fits for e in found)  # they were measured
    token, first = fe.Fit(points).estimate(fe.fitted_coefficients(points), np.arange(len(points)))
    assert [e.tpot_s for e in found] == pytest.approx(token, rel=1e-9)
    assert [e.ttft_s for e in found] == pytest.approx(first, rel=1e-9)
    for kind, most in (("dense", 0.08), ("moe", 0.10)):
        errors = [abs(e.tpot_s / p.token_s - 1) for e, p in zip(found, points) if p.kind == kind]
        assert np.median(errors) < most
