# SPDX-License-Identifier: Apache-2.0
"""benchmarks/serving/step_model.py and fit_estimates.py: sizes of models, times by hand, and the fit itself."""

import dataclasses
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

np = pytest.importorskip("numpy")
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks" / "serving"))
import fit_estimates as fe  # noqa: E402
import step_model as sm  # noqa: E402

ONE = fe.Degrees()


def shape(name):
    return SimpleNamespace(**{field: float(fe.MODELS[name].get(field, 0)) for field in fe.SHAPE})


@pytest.mark.parametrize("name", fe.MODELS)
def test_shapes_have_the_published_numbers_of_parameters(name):
    m, published = shape(name), fe.MODELS[name]
    attention, mlp, expert, head = sm.parameters(m, SimpleNamespace(**dataclasses.asdict(ONE)))
    shared = attention + mlp + 2 * head
    total = shared + sm.expert_layers(m) * m.experts * expert
    active = shared + sm.expert_layers(m) * m.top_k * expert
    assert total / 1e9 == pytest.approx(published["parameters_b"], rel=0.01)
    # Published numbers of active parameters leave out embeddings or are rounded to 1 digit.
    assert active / 1e9 == pytest.approx(published["active_b"], rel=0.12)


def test_latent_attention_without_a_low_rank_for_queries():
    # DeepSeek-V2-Lite: 15.7 billion parameters (arXiv 2405.04434, appendix B).
    lite = {"layers": 27, "hidden": 2048, "heads": 16, "kv_heads": 1, "head_size": 192, "vocabulary": 102400,
            "intermediate": 10944, "experts": 64, "top_k": 6, "moe_intermediate": 1408, "shared_experts": 2,
            "first_dense": 1, "kv_lora_rank": 512, "rope_size": 64, "nope_size": 128, "value_size": 128}  # fmt: skip
    m = SimpleNamespace(**dict.fromkeys(fe.SHAPE, 0.0) | {k: float(v) for k, v in lite.items()})
    attention, mlp, expert, head = sm.parameters(m, SimpleNamespace(**dataclasses.asdict(ONE)))
    total = attention + mlp + 2 * head + sm.expert_layers(m) * m.experts * expert
    assert total / 1e9 == pytest.approx(15.7, rel=0.01)


def test_tables_of_the_library_and_the_docs_are_those_of_the_estimates():
    fitted = json.loads((fe.HERE / "coefficients.json").read_text())
    assert fe.TABLES.read_text() == fe.cpp_tables(fitted)
    page = fe.PAGE.read_text()
    assert page == fe.with_error_table(page, fitted)


def plain(**changes):
    """Coefficients without fixed times, waits and inefficiency."""
    values = {
        name: 1.0 if unit == "fraction" else 0.0 for name, (_, unit, _) in sm.COEFFICIENTS.items()
    } | {"start": 0.0, "start_apart": 0.0}
    return SimpleNamespace(**(values | changes))


TOY = SimpleNamespace(
    **dict.fromkeys(fe.SHAPE, 0.0)
    | {"layers": 2.0, "hidden": 10.0, "heads": 4.0, "kv_heads": 2.0, "head_size": 5.0, "intermediate": 30.0}
)
GPU = SimpleNamespace(bandwidth=1e3, bf16=1e4, fp8=2e4, fp4=4e4, memory=1e6, link=100.0, network=10.0, linked=8.0)


def toy_replica(**degrees):
    formats = {f"{matrices}_{what}": v for matrices in ("attention", "mlp", "expert") for what, v in
               (("bytes", 2.0), ("peak", 1e4))}  # fmt: skip
    return SimpleNamespace(**dataclasses.asdict(fe.Degrees(**degrees)), **formats, cache_bytes=2.0)


def test_decode_step_by_hand():
    # A layer: attention 10 * 5 * (2 * 4 + 2 * 2) = 600 parameters, feed-forward 3 * 10 * 30 = 900.
    parts = sm.step_parts(TOY, GPU, toy_replica(), plain(), 0.0, 0.0, 0.0, 8.0, 100.0)
    attention = np.hypot(2 * 1200 * 8 / 1e4, 1200 * 2 / 1e3)
    feed_forward = np.hypot(2 * 1800 * 8 / 1e4, 1800 * 2 / 1e3)
    assert parts["dense"] == pytest.approx(attention + feed_forward)
    # The cache: 2 layers * 100 tokens * 2 * 2 heads * 5 numbers * 2 bytes for each of 8 sequences.
    assert parts["decode"] == pytest.approx(8 * np.hypot(2 * 4 * 10 * 200 / 1e4, 200 * 40 / 1e3))
    assert parts["experts"] == parts["prefill"] == parts["collectives"] == parts["fixed"] == 0


@pytest.mark.parametrize(
    ("tokens", "experts_read"), [(1, 2), (1e6, 8)], ids=["one token meets top_k", "many tokens meet all"]
)
def test_experts_that_tokens_meet_are_read(tokens, experts_read):
    m = SimpleNamespace(**(vars(TOY) | {"experts": 8.0, "top_k": 2.0, "moe_intermediate": 30.0}))
    parts = sm.step_parts(m, SimpleNamespace(**(vars(GPU) | {"bf16": 1e99})), toy_replica(),
                          plain(expert_compute=1e99), 0.0, 0.0, 0.0, tokens, 0.0)  # fmt: skip
    assert parts["experts"] == pytest.approx(2 * experts_read * 900 * 2 / 1e3)


@pytest.mark.parametrize(
    ("degrees", "prompt_factor"),
    [({"tensor": 2}, 2 * 1 / 2), ({"tensor": 8}, 2 * 7 / 8), ({"tensor": 16}, 2 * 15 / 16 * 10)],
    ids=["2", "8", "over the network"],
)
def test_all_reduces_by_hand(degrees, prompt_factor):
    parts = sm.step_parts(TOY, GPU, toy_replica(**degrees), plain(), 64.0, 1.0, 32.0, 0.0, 0.0)
    assert parts["collectives"] == pytest.approx(2 * 2 * prompt_factor * 64 * 10 * 2 / 100)


def test_switches_of_nvlink_send_each_number_once():
    switched = SimpleNamespace(**(vars(GPU) | {"link": 4.5e11}))
    for tensor in (2, 8):
        parts = sm.step_parts(TOY, switched, toy_replica(tensor=tensor), plain(), 64.0, 1.0, 32.0, 0.0, 0.0)
        assert parts["collectives"] == pytest.approx(2 * 2 * 64 * 10 * 2 / 4.5e11)


@pytest.mark.parametrize(
    ("source", "columns", "expected"),
    [
        ("source_file=2026-03-25", (4, 1, 1, 4), fe.Degrees(4, 1, 4, 1)),
        ("source_file=2026-03-25", (1, 8, 1, 8), fe.Degrees(1, 8, 8, 1)),
        ("source_file=2026-04-06", (16, 1, 4, 4), fe.Degrees(4, 1, 4, 1)),
        ("db-dump/2026-04-27", (1, 64, 8, 8), fe.Degrees(1, 8, 8, 1)),
        ("db-dump/2026-04-27", (4, 4, 1, 16), fe.Degrees(1, 4, 4, 1)),
        ("db-dump/2026-04-27", (8, 1, 8, 1), fe.Degrees(8, 1, 1, 8)),
        ("source_file=/Users/", (4, 0, 2, 2), fe.Degrees(4, 1, 2, 2)),
    ],
)
def test_degrees_that_some_sources_list_twice(source, columns, expected):
    names = ("tp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size")
    row = {"silicon_data_source": source} | dict(zip(names, map(str, columns)))
    assert fe.degrees(row, "", sparse=True) == expected


def synthetic(seed=0):
    """Measurements of a fit with other coefficients than the first guess, and 3 % noise."""
    points = [
        fe.Point(model, system, "vllm", "vllm", "fp8", "agg", fe.Degrees(tensor, 1, 1, tensor if sparse else 1),
                 ONE, (1, 1), float(concurrency), float(tokens), 1024.0, 1.0, 1.0)
        for model, sparse in (("Llama-3.1-70B", False), ("MiniMax-M2.5", True))
        for system in ("h200_sxm", "b200_sxm") for tensor in (4, 8)
        for concurrency in (1, 8, 64) for tokens in (1024, 8192)
    ]  # fmt: skip
    fit = fe.Fit(points)
    truth = fit.start + 0.3 * np.sin(np.arange(len(fit.start)))
    noise = np.random.default_rng(seed).normal(0, 0.03, (2, len(points)))
    token, first = fit.estimate(fit.coefficients(truth), fit.all) * np.exp(noise)
    return [dataclasses.replace(p, first_s=f, token_s=t) for p, f, t in zip(points, first, token)]


def test_the_fit_explains_synthetic_measurements_and_predicts_those_left_out():
    points = synthetic()
    fit = fe.Fit(points)
    x = fit.fit()
    assert np.median(np.abs(fit.residuals(x)), axis=1) == pytest.approx([0, 0], abs=0.05)
    groups = [p.configuration for p in points]
    left = fit.left_out(x, groups)
    assert np.median(np.abs(left), axis=1) == pytest.approx([0, 0], abs=0.1)
    # The single step agrees with a fit without the group.
    kept = [p for p in points if p.configuration != groups[0]]
    less = fe.Fit(kept)
    y = less.fit()
    assert less.names == fit.names
    rows = np.flatnonzero([g == groups[0] for g in groups])
    again = np.log(fit.estimate(fit.coefficients(y), rows)) - fit.measured[:, rows]
    assert left[:, rows] == pytest.approx(again, abs=0.05)


def test_bands_hold_the_share_that_they_promise():
    points = synthetic()
    residuals = fe.rates(points, np.random.default_rng(1).normal(0, 0.2, (2, len(points))))
    for entry in fe.bands(points, residuals):
        low, middle, high = entry["token_time"]
        assert low < middle < high
        rows = fe.cells(points)[tuple(entry["cell"].split())]
        inside = (np.exp(-residuals[0, rows]) >= low - 1e-3) & (np.exp(-residuals[0, rows]) <= high + 1e-3)
        assert inside.mean() == pytest.approx(0.8, abs=0.05)
