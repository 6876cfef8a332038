# SPDX-License-Identifier: Apache-2.0
"""benchmarks/compare.py: paired differences of two result sets."""

import importlib.util
import json
import math
from pathlib import Path

import pytest
from messages import naming

SCRIPT = Path(__file__).resolve().parents[3] / "benchmarks" / "compare.py"


@pytest.fixture(scope="module")
def compare():
    spec = importlib.util.spec_from_file_location("compare", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def run(scenario, algorithm, seed, ms, valid=True):
    return {"scenario": scenario, "algorithm": algorithm, "seed": seed, "ms": ms, "valid": valid}


def test_differences_are_paired_by_seed(compare, tmp_path):
    # Means differ by 1 in each pair although the runs of one set differ by 100 and come in another order.
    a = write(tmp_path / "a", [run("x", "fast", seed, 100.0 * seed) for seed in (1, 2, 3)])
    b = write(tmp_path / "b", [run("x", "fast", seed, 100.0 * seed + 1) for seed in (3, 1, 2)])
    rows, alone = compare.compare(compare.read(a, {}), compare.read(b, {}))
    assert alone == []
    [(names, field, count, mean_a, mean_b, difference, width)] = (
        rows  # no row for `valid`, which is no number
    )
    assert (dict(names), field, count) == ({"scenario": "x", "algorithm": "fast"}, "ms", 3)
    assert (mean_a, mean_b, difference, width) == (200, 201, 1, 0)


def test_confidence_interval(compare):
    # By hand: mean 3, standard deviation 1, n = 3, t(2) = 4.303.
    assert compare.half_width([2.0, 3.0, 4.0]) == pytest.approx(4.303 / math.sqrt(3))
    assert compare.half_width([1.0]) == math.inf


def test_quantiles(compare):
    def beyond(t, n):  # P(T > t), Simpson's rule with x = tan(u)
        scale = math.gamma((n + 1) / 2) / math.gamma(n / 2) / math.sqrt(n * math.pi)
        low, steps = math.atan(t), 2000
        h = (math.pi / 2 - low) / steps

        def f(i):
            u = low + i * h
            return (
                0.0
                if i == steps and n > 1
                else scale * (1 + math.tan(u) ** 2 / n) ** (-(n + 1) / 2) / math.cos(u) ** 2
            )

        return h / 3 * (f(0) + f(steps) + sum((4 if i % 2 else 2) * f(i) for i in range(1, steps)))

    for degrees, quantile in enumerate(compare.T, 1):
        assert beyond(quantile, degrees) == pytest.approx(0.025, abs=3e-5)


def test_algorithms_of_one_file(compare, tmp_path, capsys):
    rows = [
        run("x", name, seed, ms)
        for seed in (1, 2)
        for name, ms in (("ipc", 10.0 + seed), ("best", 3.0 + seed))
    ]
    path = write(tmp_path / "rows", rows)
    assert compare.main([path, path, "--where-a", "algorithm=ipc", "--where-b", "algorithm=best"]) == 0
    assert "| x | ms | 2 | 11.5 | 4.5 | -7 ± 0 * |" in capsys.readouterr().out


def test_runs_without_a_partner_are_named(compare, tmp_path, capsys):
    a = write(tmp_path / "a", [run("x", "fast", 1, 5.0), run("x", "fast", 2, 6.0)])
    b = write(tmp_path / "b", [run("x", "fast", 1, 5.0)])
    assert compare.main([a, b]) == 0
    out = capsys.readouterr().out
    assert "without a partner" in out and "± inf |" in out
    c = write(tmp_path / "c", [run("y", "fast", 1, 5.0)])
    assert compare.main([a, c]) == 1


def test_bad_input(compare, tmp_path):
    twice = write(tmp_path / "twice", [run("x", "fast", 1, 5.0)] * 2)
    with pytest.raises(SystemExit, match=naming("line 2: second run")):
        compare.read(twice, {})
    (tmp_path / "broken").write_text("{\n", encoding="utf-8")
    with pytest.raises(SystemExit, match=naming("line 1: not JSON")):
        compare.read(tmp_path / "broken", {})
    with pytest.raises(SystemExit):
        compare.main([twice, twice, "--where-a", "algorithm"])
