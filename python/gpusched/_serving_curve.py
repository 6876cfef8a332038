"""What rates and latency targets cost: the cheapest plan for each of them, as a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._core import serving as core
from ._core.serving import ServingPlan
from ._drawing.cost_curve import draw_curve
from ._values import a_dict, a_list
from ._views.tables import Table, format_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Curve(Table):
    """Cost against rates and targets: a row per point, each with its plan in `.plans`.

    Targets are those of the call and, where it has none, the request's; where its kinds differ, the shortest of them.
    """

    columns: tuple[str, ...] = (
        "rate", "ttft_p50_s", "ttft_p90_s", "ttft_p99_s", "tpot_p50_s", "tpot_p90_s", "tpot_p99_s",
        "status", "cost", "cost_bound", "dollars_per_1000", "rent",
    )  # fmt: skip

    def __init__(self, points: Sequence[tuple[float, Mapping[str, float | None], ServingPlan]]) -> None:
        self.plans = [plan for _, _, plan in points]
        targets = self.columns[1:7]
        super().__init__(
            {**dict.fromkeys(self.columns, "number"), "status": "text", "rent": "text"},
            [
                (
                    rate, *(wanted[name] for name in targets), plan.status,
                    plan.cost if plan.makespan is not None else None, plan.cost_bound if plan.status != "infeasible" else None,
                    1000 * plan.cost_per_request if plan.makespan is not None else None, rent_in_words(plan),
                )
                for rate, wanted, plan in points
            ],
        )  # fmt: skip

    def _part(self, at: Iterable[int]) -> Curve:
        part = super()._part(chosen := list(at))
        part.plans = [self.plans[i] for i in chosen]
        return part

    def __str__(self) -> str:
        shown = [name for name in self.columns if name not in self.columns[1:7] or any(row[name] is not None for row in self)]
        cells = [[f"{v:.4g}" if isinstance(v, float) else "-" if v is None else v for v in (row[n] for n in shown)] for row in self]
        return format_table(shown, cells)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Cost against the rate, or against a target; see `gpusched.plotting.plot_curve`."""
        return draw_curve(self, self.columns[1:7], ax)


def rent_in_words(plan: ServingPlan) -> str:
    """What a plan rents, such as `2 machines of 8 H100, 3 A40 (spot)`."""
    words = []
    for rented in plan.rentals:
        for count, spot in ((rented["count"], ""), (rented["spot"], " (spot)")):
            if not count:
                continue
            each = rented["per_rental"]
            pieces = count // each
            what = f"{count} {rented['gpu']}" if each == 1 else f"{pieces} machine{'s' * (pieces > 1)} of {each} {rented['gpu']}"
            words.append(what + spot)
    return ", ".join(words) or "nothing"


def curve(
    request: Mapping[str, Any],
    rates: Sequence[float] = (),
    targets: Sequence[Mapping[str, float]] = (),
    **options: Any,
) -> Curve:
    """The cheapest plan for each rate, each set of targets, or each pair of them, as a table with `.plot()`.

    `rates` are requests per second of all kinds together, in the proportions of the request; `targets` are dicts such as
    `{"ttft_p90_s": 0.5}`, each beside the targets of the options. `options` are those of `plan_serving`, but for `rate`,
    `goal`, `deadline`, `composition`, `routing` and `uniform_tp`.
    """
    rates = a_list("curve", "rates", rates, "numbers")
    targets = [a_dict("curve", f"targets[{at}]", each) for at, each in enumerate(a_list("curve", "targets", targets, "dicts"))]
    return Curve(core.curve(request, list(rates), [dict(target) for target in targets], **options))


def curve_to_dict(curve: Curve) -> dict[str, Any]:
    """A curve as the document `gpusched.serving-curve` v1 (docs/schema)."""
    targets = [{name: row[name] for name in Curve.columns[1:7]} for row in curve]
    return core._curve_to_dict([row.rate for row in curve], targets, curve.plans)


Curve.__module__ = curve.__module__ = curve_to_dict.__module__ = rent_in_words.__module__ = "gpusched.serving"
