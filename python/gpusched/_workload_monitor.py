"""Detects that the requests are no longer those that a serving plan was made for."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _core
from ._core import serving as core
from ._values import fields, integer, keywords, number, one_of
from .errors import InvalidInput, InvalidType, repr_text

Reals = npt.NDArray[np.float64]
MOST_TOKENS, MOST_COUNT, MOST_TIME = 10**12, 10**15, 1e15


class Shift(NamedTuple):
    """A change of the workload that was confirmed."""

    time_s: float
    """End of the window that confirmed it."""
    distance: float
    """Total variation between the shares that were expected and those of the windows that confirmed it, 0 .. 1."""
    rate_ratio: float
    """Requests/s in these windows over those before."""
    request: dict[str, Any] | None
    """The request with the workload of these windows, for `replan`; None where no requests came, which need no plan."""


def shares_differ_by_chance(count: int, kinds: int, distance: float) -> float:
    """At most how probable it is that `count` requests are so far from their true shares, in total variation.

    (2^k - 2) exp(-2 n d^2) for k kinds: Weissman et al., "Inequalities for the L1 deviation of the empirical distribution", HP Labs 2003.
    Holds for every number of requests and all shares.
    """
    count, kinds, distance = integer("count", count, 0, MOST_COUNT), integer("kinds", kinds, 1, 1000), number("distance", distance, 0, 1)
    return min(1.0, (2.0**kinds - 2) * math.exp(-2 * count * distance**2))


def rate_differs_by_chance(count: int, expected: float) -> float:
    """At most how probable it is that a Poisson number is as far from its mean as this one, on its side: Chernoff's bound, both sides."""
    count, expected = integer("count", count, 0, MOST_COUNT), number("expected", expected, 0, MOST_COUNT)
    if count == 0:
        return min(1.0, 2 * math.exp(-expected))
    if expected <= 0:
        return 0.0
    return min(1.0, 2 * math.exp(-(count * math.log(count / expected) - count + expected)))


class WorkloadMonitor:
    """Counts requests by kind in windows, and tells when they are no longer those of a request (arXiv 2502.00722, appendix M).

    A window differs where chance explains it with a probability of at most `alpha`, and the difference is worth something: the total
    variation between the shares is `least_shift` or more, or the rate is off by `least_rate_shift` or more (of requests with rates alone).
    After `persistence` windows that differ the shift is confirmed, and the workload of these windows is what is expected from then on. A
    window in between, more than half as far as that, neither counts nor starts the count anew; no shift is confirmed within
    `dwell_windows` windows of the last one.

    Parameters
    ----------
    request
        as for `plan_serving`; of requests without rates shares alone are watched
    window_s
        length of a window in seconds
    alpha
        probability of a false alarm in a window whose requests are as expected, above 0, below 1: an upper bound
    least_shift
        total variation, 0 .. 1
    least_rate_shift
        part of the rate, 0 or more
    persistence
        windows, 1 or more
    dwell_windows
        0 or more

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
        """What is expected now."""
        self.window_s = number("window_s", window_s, 1e-9, 1e9)
        self.alpha = number("alpha", alpha, 1e-300, 1 - 1e-9)
        self.least_shift = number("least_shift", least_shift, 0, 1)
        self.least_rate_shift = number("least_rate_shift", least_rate_shift, 0, 1e9)
        self.persistence = integer("persistence", persistence, 1, 10**6)
        self.dwell_windows = integer("dwell_windows", dwell_windows, 0, 10**6)
        workloads = [(model, kind, shape) for model, of in self.request["models"].items() for kind, shape in of["workloads"].items()]
        self.kinds = [(model, kind) for model, kind, _ in workloads]
        """(model, kind of requests), in the order of the request."""
        self._at = {kind: at for at, kind in enumerate(self.kinds)}
        self._logs = np.log([(max(shape["input"], 1), max(shape["output"], 1)) for _, _, shape in workloads])
        self.has_rates = any("rate" in shape for _, _, shape in workloads)
        self._expected = np.array([shape["rate" if self.has_rates else "requests"] for _, _, shape in workloads], float)
        if not self._expected.sum() > 0:
            raise InvalidInput("request: asks for nothing; expected a kind of requests with a number or a rate above 0")
        self._counts = np.zeros(len(self.kinds), np.int64)
        self._different: list[npt.NDArray[np.int64]] = []
        self._end: float | None = None
        self._since = self.dwell_windows

    def kind_of(self, input: int, output: int, model: str | None = None) -> tuple[str, str]:
        """The kind of requests, of this model or of all, whose lengths are nearest in proportion."""
        self._check_model(model)
        among = [at for at, (of, _) in enumerate(self.kinds) if model in (None, of)]
        lengths = np.log((max(integer("input", input, 0, MOST_TOKENS), 1), max(integer("output", output, 0, MOST_TOKENS), 1)))
        return self.kinds[among[int(np.argmin(((self._logs[among] - lengths) ** 2).sum(axis=1)))]]

    def observe(self, time_s: float, kind: str, model: str | None = None) -> Shift | None:
        """A request that arrived. Times do not decrease; windows begin with the first one.

        Returns a shift that was confirmed by the windows that had ended before it. Raises InvalidInput for kinds that the request does not
        have, kinds of several models without `model`, and times that decrease.
        """
        self._check_model(model)
        found = [at for (of, name), at in self._at.items() if name == kind and model in (None, of)]
        if not found:
            one_of("kind", kind, dict.fromkeys(name for of, name in self.kinds if model in (None, of)))
        if len(found) > 1:
            of = " or ".join(repr(self.kinds[at][0]) for at in found)
            raise InvalidInput(f"kind: {kind!r}: {len(found)} kinds of requests have that name; expected the model, {of}, too")
        if self._end is not None and number("time_s", time_s, -MOST_TIME, MOST_TIME) < self._end - self.window_s:
            raise InvalidInput(f"time_s: {time_s!r}; expected a time that is not before the window")
        shift = self.advance(time_s)
        self._counts[found[0]] += 1
        return shift

    def advance(self, time_s: float) -> Shift | None:
        """That it is so late: looks at the windows that have ended, those without any request among them.

        Returns the shift that one of them confirmed, the last of several.
        """
        now = number("time_s", time_s, -MOST_TIME, MOST_TIME)
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
        elif max(measures) < 0.5:  # as expected, and not on the way to a shift
            self._different.clear()
        if len(self._different) < self.persistence or self._since <= self.dwell_windows:
            return None
        windows = len(self._different)
        together = np.sum(self._different, axis=0)
        self._different.clear()
        self._since = 0
        return self._confirmed(together, windows)

    def _measures(self, counts: npt.NDArray[np.int64], windows: int) -> tuple[float, float]:
        """How far shares and rate are from what is expected, over what is worth something."""
        shares = self._distance(counts) / max(self.least_shift, 1e-12)
        rate = abs(self._ratio(counts, windows) - 1) / max(self.least_rate_shift, 1e-12) if self.has_rates else 0.0
        return shares, rate

    def _differs(self, counts: npt.NDArray[np.int64], measures: tuple[float, float]) -> bool:
        # Two tests where there are rates: each has half of alpha.
        level = self.alpha / 2 if self.has_rates else self.alpha
        total = int(counts.sum())
        shares, rate = measures
        if shares >= 1 and shares_differ_by_chance(total, len(self.kinds), self._distance(counts)) <= level:
            return True
        return rate >= 1 and rate_differs_by_chance(total, float(self._expected.sum()) * self.window_s) <= level

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
            self.request["models"][model]["workloads"][kind]["rate" if self.has_rates else "requests"] = amount
        return Shift(self._end, distance, ratio, core.request_to_dict(self.request) if counts.any() else None)


def follow_workload(
    request: Mapping[str, Any],
    plan: core.ServingPlan,
    arrivals: Iterable[tuple[float, str]],
    *,
    monitor: Mapping[str, Any] | None = None,
    **options: Any,
) -> Iterator[tuple[Shift, core.ReplanResult]]:
    """Watches arrivals, and replans whenever their workload has shifted: an iterator of (shift, what was changed).

    It takes the next arrival when it is asked for the next shift, so that `arrivals` may be a live stream. Each plan starts from the one
    before; a shift for which there is no plan, or to silence, leaves the plan as it is.

    `request`, `plan`: the plan that runs, and what it was made for. `arrivals`: (time in seconds, kind of requests), as for
    `WorkloadMonitor.observe`. `monitor`: options of `WorkloadMonitor`. `options`: of `replan`, such as `slack=0.05`.
    """
    keywords("follow_workload", options, (keyword["name"] for keyword in _core.keywords["serving.replan"]))
    given = fields("follow_workload", "monitor", monitor, list(inspect.signature(WorkloadMonitor).parameters)[1:])
    watching = WorkloadMonitor(request, **given)
    if isinstance(arrivals, (str, Mapping)) or not isinstance(arrivals, Iterable):
        raise InvalidType(f"follow_workload(): arrivals: {repr_text(arrivals)}; expected pairs of a time in seconds and a kind of requests")
    return _follow(watching, plan, arrivals, options)


def _follow(
    watching: WorkloadMonitor, plan: core.ServingPlan, arrivals: Iterable[tuple[float, str]], options: dict[str, Any]
) -> Iterator[tuple[Shift, core.ReplanResult]]:
    for at, arrival in enumerate(arrivals):
        if isinstance(arrival, str) or not isinstance(arrival, Sequence) or len(arrival) != 2:
            raise InvalidInput(f"arrivals[{at}]: {repr_text(arrival)}; expected a time in seconds and a kind of requests")
        shift = watching.observe(*arrival)
        if shift is not None and shift.request is not None:
            changed = core.replan(shift.request, plan, **options)
            if changed.plan.makespan is not None:
                plan = changed.plan
            yield shift, changed


for _public in (Shift, WorkloadMonitor, follow_workload, shares_differ_by_chance, rate_differs_by_chance):
    _public.__module__ = "gpusched.serving"
