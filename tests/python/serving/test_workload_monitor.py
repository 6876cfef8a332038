# SPDX-License-Identifier: Apache-2.0
"""The monitor of the workload: bounds against exact probabilities, false alarms, delays, hysteresis, and what
is replanned.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from gpusched import serving
from messages import refuses


def request(amounts: Sequence[float], word: str = "requests") -> dict[str, Any]:
    shapes = [(2455, 18), (824, 253), (496, 510)]
    kinds = {
        f"w{at}": {"input": i, "output": o, word: amount}
        for at, ((i, o), amount) in enumerate(zip(shapes, amounts))
    }
    return {
        "budget": 30,
        "gpus": {"H100": {"available": 8, "price": 3.0}, "A100": {"available": 8, "price": 1.75}},
        "models": {"Llama-3-70B": {"workloads": kinds}},
    }


def arrivals(
    rng: np.random.Generator, rates: Sequence[float], begin: float, seconds: float
) -> list[tuple[float, str]]:
    """Poisson arrivals of each kind."""
    times = [
        (begin + t, f"w{at}")
        for at, rate in enumerate(rates)
        for t in rng.uniform(0, seconds, rng.poisson(rate * seconds))
    ]
    return sorted(times)


def shifts(monitor: serving.WorkloadMonitor, stream: Sequence[tuple[float, str]]) -> list[serving.Shift]:
    found = [monitor.observe(time, kind) for time, kind in stream]
    return [shift for shift in found if shift is not None]


@pytest.mark.parametrize("shares", [(0.5, 0.3, 0.2), (0.9, 0.1), (0.25, 0.25, 0.25, 0.25)])
def test_the_bound_on_shares_is_above_the_exact_probability(shares: tuple[float, ...]) -> None:
    """All outcomes of a few requests, and their multinomial probabilities."""
    for count in (5, 12, 30 if len(shares) < 4 else 15):
        outcomes = []
        for split in itertools.product(range(count + 1), repeat=len(shares) - 1):
            if sum(split) <= count:
                counts = (*split, count - sum(split))
                chance = math.factorial(count)
                for share, number in zip(shares, counts):
                    chance = chance * share**number / math.factorial(number)
                outcomes.append((sum(abs(n / count - s) for n, s in zip(counts, shares)) / 2, chance))
        assert sum(chance for _, chance in outcomes) == pytest.approx(1)
        for distance in (0.05, 0.1, 0.2, 0.3, 0.4, 0.5):
            exact = sum(chance for at, chance in outcomes if at >= distance - 1e-12)
            assert exact <= serving.shares_differ_by_chance(count, len(shares), distance) + 1e-12


@pytest.mark.parametrize("expected", [0.5, 4.0, 30.0])
def test_the_bound_on_rates_is_above_the_exact_probability(expected: float) -> None:
    chances = [math.exp(-expected + n * math.log(expected) - math.lgamma(n + 1)) for n in range(300)]
    for count in range(120):
        tail = sum(chances[: count + 1]) if count <= expected else sum(chances[count:])
        assert tail <= serving.rate_differs_by_chance(count, expected) + 1e-12


def test_no_shift_without_a_change() -> None:
    """A thousand windows with few requests each, whose shares are far off by chance alone."""
    rng = np.random.default_rng(1)
    monitor = serving.WorkloadMonitor(
        request([1, 1, 1], "rate"), window_s=20, persistence=1, dwell_windows=0, alpha=0.01
    )
    far = 0
    found = []
    for number in range(1000):
        window = arrivals(rng, (1, 1, 1), 20.0 * number, 20)
        counts = np.bincount([int(kind[1]) for _, kind in window], minlength=3)
        far += np.abs(counts / counts.sum() - 1 / 3).sum() / 2 >= 0.1
        found += shifts(monitor, window)
    assert far > 100 and len(found) <= 10  # 0.01 of the windows at most


def test_a_shift_of_shares_is_reported_with_its_workload() -> None:
    rng = np.random.default_rng(2)
    monitor = serving.WorkloadMonitor(request([300, 500, 200]), window_s=60, persistence=3)
    before, after = (1.5, 2.5, 1.0), (3.5, 1.0, 0.5)
    assert not shifts(monitor, arrivals(rng, before, 0, 1800))
    found = shifts(monitor, arrivals(rng, after, 1800, 3600))
    assert len(found) == 1
    shift = found[0]
    assert 1800 + 3 * 60 <= shift.time_s <= 1800 + 5 * 60
    assert shift.distance == pytest.approx(0.4, abs=0.08) and shift.rate_ratio == 1.0
    counts = [kind["requests"] for kind in shift.request["models"]["Llama-3-70B"]["workloads"].values()]
    assert sum(counts) == pytest.approx(1000) and np.allclose(counts, [700, 200, 100], atol=80)
    assert shift.request == monitor.request == serving.request_to_dict(shift.request)


def test_a_rate_that_grows_is_a_shift_of_requests_with_rates_alone() -> None:
    rng = np.random.default_rng(3)
    stream = [*arrivals(rng, (1, 2, 1), 0, 1200), *arrivals(rng, (2, 4, 2), 1200, 2400)]
    found = shifts(serving.WorkloadMonitor(request([1, 2, 1], "rate"), window_s=60), stream)
    assert len(found) == 1 and found[0].rate_ratio == pytest.approx(2, abs=0.3) and found[0].distance < 0.1
    rates = [kind["rate"] for kind in found[0].request["models"]["Llama-3-70B"]["workloads"].values()]
    assert np.allclose(rates, [2, 4, 2], atol=0.6)
    assert not shifts(serving.WorkloadMonitor(request([1, 2, 1]), window_s=60), stream)


def test_silence_is_a_shift() -> None:
    monitor = serving.WorkloadMonitor(request([1, 2, 1], "rate"), window_s=60)
    shifts(monitor, arrivals(np.random.default_rng(4), (1, 2, 1), 0, 600))
    shift = monitor.advance(1200)
    assert shift is not None and shift.rate_ratio == 0 and shift.request is None


def test_one_window_is_no_shift_and_a_workload_at_the_limit_does_not_flap() -> None:
    """Windows alternate between far and near: with persistence 3 nothing is confirmed; half-way windows do
    not undo the count.
    """

    def windows(kinds: Sequence[Sequence[int]]) -> Iterator[tuple[float, str]]:
        for number, counts in enumerate(kinds):
            names = [f"w{at}" for at, count in enumerate(counts) for _ in range(count)]
            yield from ((60.0 * number + 60 * at / (len(names) + 1), name) for at, name in enumerate(names))
        yield 60.0 * len(kinds), "w0"

    expected, far, near, between = (300, 500, 200), (600, 300, 100), (300, 500, 200), (370, 450, 180)

    def confirmed(*kinds: Sequence[int]) -> int:
        return len(shifts(serving.WorkloadMonitor(request(expected), window_s=60), list(windows(kinds))))

    assert confirmed(far, near, far, near, far, near, far) == 0
    assert confirmed(far, far, near, far, far) == 0
    assert confirmed(far, far, far) == 1
    assert confirmed(far, between, far, between, far) == 1
    assert confirmed(*[between] * 20) == 0
    # There and back within the dwell time: one shift, until the dwell time is over.
    assert confirmed(*[far] * 3, *[near] * 6) == 1
    assert confirmed(*[far] * 3, *[near] * 8) == 2


def test_kinds_by_lengths() -> None:
    monitor = serving.WorkloadMonitor(request([1, 1, 1]))
    assert monitor.kind_of(2000, 20) == ("Llama-3-70B", "w0")
    assert monitor.kind_of(500, 700) == ("Llama-3-70B", "w2")
    assert monitor.kind_of(0, 0)[0] == "Llama-3-70B"
    with refuses("model: 'x'; expected one of 'Llama-3-70B'"):
        monitor.kind_of(1, 1, "x")


def test_replanning_follows_the_workload() -> None:
    """Prompts turn into long answers: the new plan serves the new workload as well as a plan made for it, and
    starts from the old one.
    """
    old, new = (900, 50, 50), (50, 50, 900)
    plan = serving.plan_serving(request(old), time_limit=5)
    rng = np.random.default_rng(5)
    stream = [
        *arrivals(rng, [x / 200 for x in old], 0, 1200),
        *arrivals(rng, [x / 200 for x in new], 1200, 2400),
    ]
    follow = serving.follow_workload(request(old), plan, iter(stream), monitor={"window_s": 60}, time_limit=5)
    (shift, changed), *rest = list(follow)
    assert not rest and shift.distance > 0.7
    best = serving.plan_serving(shift.request, time_limit=5)
    assert changed.plan.makespan <= 1.01 * best.makespan
    assert changed.makespan_kept is None or changed.makespan_kept >= changed.plan.makespan * 0.999


def test_a_stream_is_read_only_as_far_as_needed() -> None:
    taken = []

    def stream() -> Iterator[tuple[float, str]]:
        for number in range(100_000):
            taken.append(number)
            yield number * 0.5, "w2"

    follow = serving.follow_workload(request((900, 50, 50)), serving.plan_serving(request((900, 50, 50)),
        time_limit=5), stream(),
                                     monitor={"window_s": 60}, time_limit=5)  # fmt: skip
    next(follow)
    assert len(taken) == 361  # three windows of 120 requests, and the first of the fourth


def test_mistakes() -> None:
    for options, told in (
        ({"window_s": 0}, "window_s: 0; expected a number from 1e-09"),
        ({"persistence": 0}, "persistence: 0; expected"),
    ):
        with refuses(told):
            serving.WorkloadMonitor(request([1, 1, 1]), **options)
    with refuses("request: no requests;"):
        serving.WorkloadMonitor(request([0, 0, 0]))
    monitor = serving.WorkloadMonitor(request([1, 1, 1]), window_s=10)
    for now, kind, told in (
        (1.0, "x", "kind: 'x'; expected one of 'w0', 'w1', 'w2'"),
        (math.nan, "w0", "time_s: nan; expected"),
    ):
        with refuses(told):
            monitor.observe(now, kind)
    monitor.observe(100.0, "w0")
    monitor.observe(105.0, "w1")
    with refuses("time_s: 99.0"):
        monitor.observe(99.0, "w0")
