# SPDX-License-Identifier: Apache-2.0
"""Detects when the requests differ from the workload that a serving plan was made for."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _core
from ._checks import as_options, integer, number, one_of, require_keywords
from ._core import serving as core
from .errors import InvalidInput, InvalidType, repr_text

Reals = npt.NDArray[np.float64]
MAX_TOKENS, MAX_COUNT, MAX_TIME = 10**12, 10**15, 1e15


class Shift(NamedTuple):
    """A confirmed change of the workload."""

    time_s: float
    """End of the window that confirmed the change."""
    distance: float
    """Total variation between the expected shares and the shares of the confirming windows, 0 to 1."""
    rate_ratio: float
    """Rate in these windows divided by the rate before."""
    request: dict[str, Any] | None
    """The request with the workload of these windows, for `replan`; None if no requests arrived."""


def shares_differ_by_chance(count: int, kinds: int, distance: float) -> float:
    """Upper bound on the probability that the shares of `count` requests differ by chance from the true
    shares.

    `distance` is the total variation. The bound is (2^k - 2) exp(-2 n d^2) for k kinds (Weissman et al.,
    "Inequalities for the L1 deviation of the empirical distribution", HP Labs 2003). It holds for all numbers
    of requests and shares.
    """
    count, kinds = integer("count", count, 0, MAX_COUNT), integer("kinds", kinds, 1, 1000)
    distance = number("distance", distance, 0, 1)
    return min(1.0, (2.0**kinds - 2) * math.exp(-2 * count * distance**2))


def rate_differs_by_chance(count: int, expected: float) -> float:
    """Upper bound (Chernoff) on the probability that a Poisson number is as far from its mean by chance."""
    count, expected = integer("count", count, 0, MAX_COUNT), number("expected", expected, 0, MAX_COUNT)
    if count == 0:
        return min(1.0, 2 * math.exp(-expected))
    if expected <= 0:
        return 0.0
    return min(1.0, 2 * math.exp(-(count * math.log(count / expected) - count + expected)))


def mean_logs(workload: Mapping[str, Any]) -> npt.NDArray[np.float64]:
    """The mean logarithms of the prompt and the answer of a workload's requests."""
    lengths = workload.get("lengths") or [[workload["input"], workload["output"]]]
    weights = [row[2] if len(row) > 2 else 1.0 for row in lengths]
    return np.average(np.log([row[:2] for row in lengths]), axis=0, weights=weights)


class WorkloadMonitor:
    """Counts requests by kind in windows, and reports shifts of the workload (arXiv 2502.00722, appendix M).

    A window differs if the difference is significant and large enough. Significant: chance explains it with a
    probability of at most `alpha`. Large enough: the total variation of the shares is at least `least_shift`,
    or the rate is off by at least `least_rate_shift`. A shift is confirmed after `persistence` windows that
    differ; their workload is the expected one from then on. A window with more than half of such a difference
    neither counts nor resets the count.

    Parameters
    ----------
    request
        as for `plan_serving`; without rates, only the shares are watched
    window_s
        length of a window in seconds
    alpha
        upper bound on the probability of a false alarm per window, between 0 and 1
    least_shift
        total variation, 0 to 1
    least_rate_shift
        relative to the rate, at least 0
    persistence
        number of windows, at least 1
    dwell_windows
        windows after a shift in which no other shift is confirmed, at least 0

    Raises InvalidInput for malformed requests and options out of range.
    """

    def __init__(
        self,
        request: Mapping[str, Any],
        *,
        window_s: float = 300.0,
        alpha: float = 1e-3,
        least_shift: float = 0.1,
        least_rate_shift: float = 0.25,
        persistence: int = 3,
        dwell_windows: int = 6,
    ) -> None:
        self.request = core.request_to_dict(request)
        """The request with the expected workload."""
        self.window_s = number("window_s", window_s, 1e-9, 1e9)
        self.alpha = number("alpha", alpha, 1e-300, 1 - 1e-9)
        self.least_shift = number("least_shift", least_shift, 0, 1)
        self.least_rate_shift = number("least_rate_shift", least_rate_shift, 0, 1e9)
        self.persistence = integer("persistence", persistence, 1, 10**6)
        self.dwell_windows = integer("dwell_windows", dwell_windows, 0, 10**6)
        workloads = [
            (model, kind, shape)
            for model, served in self.request["models"].items()
            for kind, shape in served["workloads"].items()
        ]
        self.kinds = [(model, kind) for model, kind, _ in workloads]
        """(model, kind of requests) in the order of the request."""
        self._at = {kind: at for at, kind in enumerate(self.kinds)}
        self._logs = np.array([mean_logs(shape) for _, _, shape in workloads])
        self.has_rates = any("rate" in shape for _, _, shape in workloads)
        self._expected = np.array(
            [shape["rate" if self.has_rates else "requests"] for _, _, shape in workloads], float
        )
        if not self._expected.sum() > 0:
            raise InvalidInput(
                "request: no requests; expected a kind of requests with a number or a rate above 0"
            )
        self._counts = np.zeros(len(self.kinds), np.int64)
        self._different: list[npt.NDArray[np.int64]] = []
        self._end: float | None = None
        self._since = self.dwell_windows

    def kind_of(self, input: int, output: int, model: str | None = None) -> tuple[str, str]:
        """The kind of requests with the nearest lengths (in proportion), of this model or of all models."""
        self._check_model(model)
        candidates = [at for at, (of, _) in enumerate(self.kinds) if model in (None, of)]
        tokens = integer("input", input, 0, MAX_TOKENS), integer("output", output, 0, MAX_TOKENS)
        distances = ((self._logs[candidates] - np.log(np.maximum(tokens, 1))) ** 2).sum(axis=1)
        return self.kinds[candidates[int(np.argmin(distances))]]

    def observe(self, time_s: float, kind: str, model: str | None = None) -> Shift | None:
        """Counts a request that arrived. Times must not decrease; the first window begins with the first
        request.

        Returns the shift that the windows before this request confirmed, if any. Raises InvalidInput for
        unknown kinds, for kinds of several models without `model`, and for times before the current window.
        """
        self._check_model(model)
        found = [at for (of, name), at in self._at.items() if name == kind and model in (None, of)]
        if not found:
            one_of("kind", kind, dict.fromkeys(name for of, name in self.kinds if model in (None, of)))
        if len(found) > 1:
            of = " or ".join(repr(self.kinds[at][0]) for at in found)
            raise InvalidInput(
                f"kind: {kind!r} is a kind of requests of {len(found)} models; expected model, one of {of}"
            )
        if (
            self._end is not None
            and number("time_s", time_s, -MAX_TIME, MAX_TIME) < self._end - self.window_s
        ):
            raise InvalidInput(f"time_s: {time_s!r}; expected a time in or after the current window")
        shift = self.advance(time_s)
        self._counts[found[0]] += 1
        return shift

    def advance(self, time_s: float) -> Shift | None:
        """Moves the time forward and evaluates the windows that have ended, including windows without
        requests.

        Returns the last shift that these windows confirmed, if any.
        """
        now = number("time_s", time_s, -MAX_TIME, MAX_TIME)
        if self._end is None:
            self._end = now + self.window_s
        shift = None
        while now >= self._end:
            shift = self._close() or shift
            self._end += self.window_s
        return shift

    def _check_model(self, model: str | None) -> None:
        if model is not None:
            one_of("model", model, dict.fromkeys(of for of, _ in self.kinds))

    def _close(self) -> Shift | None:
        counts, self._counts = self._counts, np.zeros_like(self._counts)
        self._since += 1
        measures = self._measures(counts, 1)
        if self._differs(counts, measures):
            self._different.append(counts)
        elif max(measures) < 0.5:  # close to the expected workload
            self._different.clear()
        if len(self._different) < self.persistence or self._since <= self.dwell_windows:
            return None
        windows = len(self._different)
        together = np.sum(self._different, axis=0)
        self._different.clear()
        self._since = 0
        return self._confirmed(together, windows)

    def _measures(self, counts: npt.NDArray[np.int64], windows: int) -> tuple[float, float]:
        """Differences of shares and rate from the expected ones, relative to the smallest that count."""
        shares = self._distance(counts) / max(self.least_shift, 1e-12)
        rate = (
            abs(self._ratio(counts, windows) - 1) / max(self.least_rate_shift, 1e-12)
            if self.has_rates
            else 0.0
        )
        return shares, rate

    def _differs(self, counts: npt.NDArray[np.int64], measures: tuple[float, float]) -> bool:
        # With rates there are two tests; each gets half of alpha.
        level = self.alpha / 2 if self.has_rates else self.alpha
        total = int(counts.sum())
        shares, rate = measures
        if shares >= 1 and shares_differ_by_chance(total, len(self.kinds), self._distance(counts)) <= level:
            return True
        return (
            rate >= 1 and rate_differs_by_chance(total, float(self._expected.sum()) * self.window_s) <= level
        )

    def _distance(self, counts: npt.NDArray[np.int64]) -> float:
        total = counts.sum()
        if total == 0 or self._expected.sum() == 0:
            return 0.0
        return float(np.abs(counts / total - self._expected / self._expected.sum()).sum() / 2)

    def _ratio(self, counts: npt.NDArray[np.int64], windows: int) -> float:
        expected = float(self._expected.sum()) * self.window_s * windows
        return float(counts.sum()) / expected if expected > 0 else math.inf

    def _confirmed(self, counts: npt.NDArray[np.int64], windows: int) -> Shift:
        assert self._end is not None
        distance = self._distance(counts)
        ratio = self._ratio(counts, windows) if self.has_rates else 1.0
        if self.has_rates:
            self._expected = counts / (windows * self.window_s)
        else:
            self._expected = counts / max(int(counts.sum()), 1) * self._expected.sum()
        for (model, kind), amount in zip(self.kinds, self._expected.tolist()):
            self.request["models"][model]["workloads"][kind]["rate" if self.has_rates else "requests"] = (
                amount
            )
        return Shift(self._end, distance, ratio, core.request_to_dict(self.request) if counts.any() else None)


def follow_workload(
    request: Mapping[str, Any],
    plan: core.ServingPlan,
    arrivals: Iterable[tuple[float, str]],
    *,
    monitor: Mapping[str, Any] | None = None,
    **options: Any,
) -> Iterator[tuple[Shift, core.ReplanResult]]:
    """Watches arrivals and replans after each shift of the workload. Yields (shift, replanning result).

    Arrivals are read as the caller asks for shifts, so `arrivals` can be a live stream. Each plan starts from
    the one before. If there is no new plan, or no more requests, the plan stays.

    `request`, `plan`: the running plan and its request. `arrivals`: (time in seconds, kind of
    requests), as for `WorkloadMonitor.observe`. `monitor`: options of `WorkloadMonitor`. `options`:
    as for `replan`, such as `slack=0.05`.
    """
    require_keywords(
        "follow_workload", options, (keyword["name"] for keyword in _core.keywords["serving.replan"])
    )
    known = list(inspect.signature(WorkloadMonitor).parameters)[1:]
    watching = WorkloadMonitor(request, **as_options("follow_workload", "monitor", monitor, known))
    if isinstance(arrivals, (str, Mapping)) or not isinstance(arrivals, Iterable):
        expected = "expected pairs of a time in seconds and a kind of requests"
        raise InvalidType(f"follow_workload(): arrivals: {repr_text(arrivals)}; {expected}")
    return _follow(watching, plan, arrivals, options)


def _follow(
    watching: WorkloadMonitor,
    plan: core.ServingPlan,
    arrivals: Iterable[tuple[float, str]],
    options: dict[str, Any],
) -> Iterator[tuple[Shift, core.ReplanResult]]:
    for at, arrival in enumerate(arrivals):
        if isinstance(arrival, str) or not isinstance(arrival, Sequence) or len(arrival) != 2:
            expected = "expected a pair of a time in seconds and a kind of requests"
            raise InvalidInput(f"arrivals[{at}]: {repr_text(arrival)}; {expected}")
        shift = watching.observe(*arrival)
        if shift is not None and shift.request is not None:
            changed = core.replan(shift.request, plan, **options)
            if changed.plan.makespan is not None:
                plan = changed.plan
            yield shift, changed


for _public in (Shift, WorkloadMonitor, follow_workload, shares_differ_by_chance, rate_differs_by_chance):
    _public.__module__ = "gpusched.serving"
