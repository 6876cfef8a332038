"""Room on a server for the pods of an hour, with the capacity that Standby pods lend (docs/model.md: capacity, twice)."""

from __future__ import annotations

WHOLE = 1000
"""Thousandths of a GPU, and of a core."""


class Room:
    """What is left: not claimed (`firm`), and not consumed (`lendable`), of each GPU and of the cores."""

    def __init__(self, gpus: int, cpu_milli: int) -> None:
        self.firm, self.lendable = [WHOLE] * gpus, [WHOLE] * gpus
        self.firm_cpu, self.lendable_cpu = cpu_milli, cpu_milli

    def take(self, gpus: int, share_milli: int, cpu_milli: int, *, spot: bool, standby: bool) -> list[int] | None:
        """GPUs for a pod, or None where it has no room.

        Spot pods take what is not consumed, GPUs that are lent first; others what is not claimed either. A part goes to the
        tightest GPU.
        """
        free = self.lendable if spot else [min(pair) for pair in zip(self.firm, self.lendable)]
        if cpu_milli > (self.lendable_cpu if spot else min(self.firm_cpu, self.lendable_cpu)):
            return None
        fit = [at for at, left in enumerate(free) if left >= share_milli]
        if len(fit) < gpus:
            return None
        fit.sort(key=lambda at: (free[at], self.firm[at] if spot else 0, at))
        chosen = sorted(fit[:gpus])
        for at in chosen:
            self.firm[at] -= 0 if spot else share_milli
            self.lendable[at] -= 0 if standby else share_milli
        self.firm_cpu -= 0 if spot else cpu_milli
        self.lendable_cpu -= 0 if standby else cpu_milli
        return chosen
