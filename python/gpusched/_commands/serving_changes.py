"""What replanning changes, in words: which replicas start and stop, and how many of the others must restart on other GPUs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from .. import serving
from .._views.words import counted
from ..errors import InvalidInput, repr_text

Key = tuple[str, tuple[tuple[str, int, int], ...]]
"""Model and stages (GPU type, degree, layers): replicas that are equal in both are alike."""


def require_rentals(path: str, before: Mapping[str, Any]) -> None:
    """Raises InvalidInput unless a plan's document says of each GPU type how many were rented, at the usual and at the spot price."""
    rentals = before.get("rentals", [])
    if not isinstance(rentals, list):
        raise InvalidInput(f"{path}: rentals: {repr_text(rentals)}; expected a list, as in a serving plan")
    for i, rental in enumerate(rentals):
        counts = [rental.get(name) for name in ("count", "spot")] if isinstance(rental, dict) else [None]
        if not all(isinstance(n, int) and n >= 0 for n in counts) or not isinstance(rental.get("gpu"), str):
            raise InvalidInput(f"{path}: rentals[{i}]: {repr_text(rental)}; expected gpu, count and spot, as in a serving plan")


def key_of(replicas: Mapping[str, Any]) -> Key:
    return replicas["model"], tuple((stage["gpu"], stage["degree"], stage["layers"]) for stage in replicas["stages"])


def counts_of(plan: Iterable[Mapping[str, Any]]) -> Counter[Key]:
    counts: Counter[Key] = Counter()
    for replicas in plan:
        counts[key_of(replicas)] += replicas["count"]
    return counts


def starts_and_stops(before: Mapping[str, Any], changed: serving.ReplanResult) -> str:
    """How many replicas start and stop, and of which deployments, such as `starts 1 replica (1 H100 1x4) and stops 0`."""
    old, new = counts_of(before["replicas"]), counts_of(changed.plan.replicas)
    several = len({model for model, _ in (*old, *new)}) > 1
    names = {key_of(r): r["deployment"] for r in (*before["replicas"], *changed.plan.replicas) if "deployment" in r}

    def which(more: Counter[Key]) -> str:
        words = [f"{count} {names.get(key, 'unnamed')}" + (f" of {key[0]}" if several else "") for key, count in more.items()]
        return f" ({', '.join(words)})" if words else ""

    return f"starts {counted(changed.starts, 'replica')}{which(new - old)} and stops {changed.stops}{which(old - new)}"


def restarts(before: Mapping[str, Any], plan: serving.ServingPlan) -> str | None:
    """How many replicas that go on must at least restart on other GPUs, because theirs are no longer rented; None where none must.

    The GPUs of a type that are still rented hold as many replicas as fit, the smallest first.
    """
    rented = {r["gpu"]: r for r in plan.rentals}
    kept = counts_of(before["replicas"]) & counts_of(plan.replicas)
    each, given_back = [], []  # of each GPU type
    for old in before.get("rentals", []):
        gpu, now = old["gpu"], rented.get(old["gpu"], {"count": 0, "spot": 0})
        gone = {"usual": max(0, old["count"] - now["count"]), "spot": max(0, old["spot"] - now["spot"])}
        sizes = [(sum(degree for name, degree, _ in stages if name == gpu), count) for (_, stages), count in kept.items()]
        too_many = sum(size * count for size, count in sizes) - (old["count"] + old["spot"] - sum(gone.values()))
        must = 0
        for size, count in sorted(sizes, reverse=True):
            if too_many > 0:
                some = min(count, -(-too_many // size))
                must, too_many = must + some, too_many - some * size
        if must:
            each.append(must)
            given_back += [f"{count} {price} {gpu}" for price, count in gone.items() if count]
    if not each:
        return None
    types = max(len({gpu for gpu, _, _ in stages}) for _, stages in kept)  # a replica on several is in the count of each
    least = max(*each, -(-sum(each) // types))
    return f"at least {least} of the replicas that go on must restart on other GPUs: {' and '.join(given_back)} are no longer rented"
