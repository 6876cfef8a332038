# SPDX-License-Identifier: Apache-2.0
"""Costs of rates and latency targets: the cheapest plan for each of them, as a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._checks import as_dict, as_list
from ._core import serving as core
from ._core.serving import ServingPlan
from ._drawing import draw_curve
from ._views.tables import Table, counted, format_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


PERCENTILES = (50, 90, 95, 99)
TARGETS = tuple(
    f"{latency}_p{percent}_s" for latency in ("ttft", "tpot", "latency") for percent in PERCENTILES
)


class Curve(Table):
    """Cost against rates and targets: one row per point, with its plan in `.plans`.

    A target of the call is shown before a target of the request. If kinds of requests have different targets,
    the shortest is shown.
    """

    columns: tuple[str, ...] = (
        "rate", *TARGETS, "status", "cost", "cost_bound", "dollars_per_1000", "rent",
    )  # fmt: skip

    def __init__(self, points: Sequence[tuple[float, Mapping[str, float | None], ServingPlan]]) -> None:
        self.plans = [plan for _, _, plan in points]
        super().__init__(
            {**dict.fromkeys(self.columns, "number"), "status": "text", "rent": "text"},
            [
                (
                    rate, *(requested[name] for name in TARGETS), plan.status,
                    plan.cost if plan.makespan is not None else None,
                    plan.cost_bound if plan.status != "infeasible" else None,
                    1000 * plan.cost_per_request if plan.makespan is not None else None, rent_in_words(plan),
                )
                for rate, requested, plan in points
            ],
        )  # fmt: skip

    def _part(self, at: Iterable[int]) -> Curve:
        part = super()._part(chosen := list(at))
        part.plans = [self.plans[i] for i in chosen]
        return part

    def __str__(self) -> str:
        unused = [name for name in TARGETS if all(row[name] is None for row in self)]
        shown = [name for name in self.columns if name not in unused]

        def cell(value: Any) -> Any:
            return f"{value:.4g}" if isinstance(value, float) else "-" if value is None else value

        return format_table(shown, [[cell(row[name]) for name in shown] for row in self])

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draws the cost against the rate or a target; see `gpusched.plotting.plot_curve`."""
        return draw_curve(self, TARGETS, ax)


def rent_in_words(plan: ServingPlan) -> str:
    """The rented GPUs of a plan as text, such as `2 machines of 8 H100, 3 A40 (spot)`."""
    words = []
    for rented in plan.rentals:
        for count, spot in ((rented["count"], ""), (rented["spot"], " (spot)")):
            if not count:
                continue
            each = rented["per_rental"]
            machines = counted(count // each, "machine")
            words.append((f"{count} " if each == 1 else f"{machines} of {each} ") + rented["gpu"] + spot)
    return ", ".join(words) or "nothing"


def curve(
    request: Mapping[str, Any],
    rates: Sequence[float] = (),
    targets: Sequence[Mapping[str, float]] = (),
    **options: Any,
) -> Curve:
    """The cheapest plan for each rate, each set of targets, or each pair of them, as a table with `.plot()`.

    `rates`: requests per second of all kinds together, in the proportions of the request.
    `targets`: dicts such as `{"ttft_p90_s": 0.5}`, which are added to the targets of the options.
    `options`: as for `plan_serving`, except `rate`, `goal`, `deadline`, `composition`, `routing`
    and `uniform_tp`.
    """
    rates = as_list("curve", "rates", rates, "numbers")
    listed = enumerate(as_list("curve", "targets", targets, "dicts"))
    return Curve(
        core._curve(
            request, rates, [as_dict("curve", f"targets[{at}]", each) for at, each in listed], **options
        )
    )


def curve_to_dict(curve: Curve) -> dict[str, Any]:
    """A curve as a document of the format `gpusched.serving-curve` v1 (docs/schema)."""
    targets = [{name: row[name] for name in TARGETS} for row in curve]
    return core._curve_to_dict([row.rate for row in curve], targets, curve.plans)


Curve.__module__ = curve.__module__ = curve_to_dict.__module__ = rent_in_words.__module__ = "gpusched.serving"
