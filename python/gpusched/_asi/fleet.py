"""The fleet: Table 1's sizes, and Figure 4, left."""

from __future__ import annotations

import numpy as np

from .._views.tables import Table
from .batch import MICRO
from .demand import share
from .ids import Ids
from .release import Hour
from .server_hour import Servers


class Fleet:
    """Servers by GPU model, over all hours that there are; a server counts as it was last, once for each model that it had."""

    def __init__(self) -> None:
        self.days: set[int] = set()
        self.servers = Ids()
        self.gpus: dict[tuple[int, str], int] = {}

    def add(self, hour: Hour, servers: Servers) -> None:
        self.days.add(hour[0])
        models = list(servers.models)
        new = np.array([self.servers.setdefault(name, len(self.servers)) for name in servers.ids])
        for at in np.flatnonzero(servers.gpus > 0).tolist():
            model = servers.model[at]
            self.gpus[int(new[at]), models[model] if model >= 0 else ""] = int(servers.gpus[at]) // MICRO

    def tables(self) -> dict[str, Table]:
        sums: dict[str, list[int]] = {}
        for (_, model), gpus in self.gpus.items():
            row = sums.setdefault(model, [0, 0])
            row[0] += 1
            row[1] += gpus
        whole = sum(gpus for _, gpus in sums.values())
        left = [(model, servers, gpus, share(gpus, whole)) for model, (servers, gpus) in sorted(sums.items())]
        size = (len(self.days), len({server for server, _ in self.gpus}), whole, len(sums))
        return {
            "table1": Table(dict.fromkeys(("days", "servers", "gpus", "gpu_models"), "whole"), [size]),
            "fig4_left": Table({"gpu_model": "text", "servers": "whole", "gpus": "whole", "share_pct": "number"}, left),
        }
