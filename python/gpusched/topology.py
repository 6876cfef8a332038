# SPDX-License-Identifier: Apache-2.0
"""The network as a tree, machines as graphs, racks with one NVLink domain, and FlexTopo's agent."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from ._core import io as _io
from ._core.topology import *
from ._core.topology import HardwareGraph
from .errors import BackendError, InvalidInput, repr_text

__all__ = [
    "FlexTopoAgent",
    "HardwareGraph",
    "NetworkTree",
    "RackPreset",
    "Vertex",
    "add_racks",
    "hardware_to_dot",
    "rack_preset",
    "to_dot",
]

_Holders = Mapping[str, Mapping[str, Sequence[Any]]]
"""By pod: its GPUs (index or UUID) and cores."""


class _StopEvent(Protocol):
    """Ends a loop when it is set, such as a `threading.Event`."""

    def wait(self, timeout: float, /) -> bool: ...


def _with_holders(graph: HardwareGraph, holders: _Holders) -> HardwareGraph:
    """The machine with these holders of GPUs and cores, and no others.

    A core group counts as held by the holder of its lowest held core. A failed GPU stays failed and gets its
    holder. Raises InvalidInput for unknown GPUs and cores, and for GPUs and cores with two holders.
    """
    if not isinstance(holders, Mapping):
        raise InvalidInput(f"holders: {repr_text(holders)}; expected a dict by pod")
    vertices, edges = graph.vertices, graph.edges
    numbers = {(v["kind"], str(v["id"])): at for at, v in enumerate(vertices)}
    numbers |= {("gpu", v["uuid"]): at for at, v in enumerate(vertices) if v.get("uuid")}
    users: dict[int, str] = {}
    problems: list[str] = []
    for pod, parts in holders.items():
        if not isinstance(parts, Mapping) or set(parts) - {"gpus", "cores"}:
            problems.append(f"holders[{pod!r}]: {repr_text(parts)}; expected gpus and cores")
            continue
        for part, held in parts.items():
            for item in held if isinstance(held, Sequence) and not isinstance(held, str) else [held]:
                at = numbers.get((part.removesuffix("s"), str(item)))
                if at is None:
                    problems.append(f"holders[{pod!r}].{part}: {item!r}; expected one that the machine has")
                elif users.setdefault(at, pod) != pod:
                    problems.append(f"holders[{pod!r}].{part}: {item!r} is already held by {users[at]!r}")
    if problems:
        raise InvalidInput(problems)
    cores: dict[int, list[tuple[int, str]]] = {}
    for a, b, relation, _ in edges:
        if relation == "contains":
            group, core = (a, b) if vertices[a]["kind"] == "core_group" else (b, a)
            if core in users:
                cores.setdefault(group, []).append((vertices[core]["id"], users[core]))
    users |= {group: min(held)[1] for group, held in cores.items()}
    for at, vertex in enumerate(vertices):
        vertex["used_by"] = users.get(at, "")
        if vertex["status"] != "failed":
            vertex["status"] = "allocated" if at in users else "free"
    return HardwareGraph(vertices, edges)


class FlexTopoAgent:
    """Keeps the FlexTopo object of a machine up to date: reads, reconciles, publishes (FlexTopo, section
    3.3).

    The agent reads the hardware rarely and the holders often. It publishes the object only if it has changed.

    Parameters
    ----------
    name
        name of the object, which is the node's name
    read
        returns the machine as it is now, such as `gpusched.io.read_this_machine`
    publish
        receives the object, a dict
    holders
        returns the holders of GPUs and cores by pod, such as `{"team/pod": {"gpus": [0, 1], "cores": [0]}}`;
        a GPU is an index or a UUID. None: the holders of the first reading stay.
    """

    def __init__(
        self,
        name: str,
        read: Callable[[], _io.HardwareReading],
        publish: Callable[[dict[str, Any]], object],
        holders: Callable[[], _Holders] | None = None,
    ) -> None:
        self.name = name
        self.graph: HardwareGraph | None = None
        """The machine at the last reading."""
        self.published: dict[str, Any] | None = None
        """The last published object."""
        self._read, self._publish, self._holders = read, publish, holders

    def check_hardware(self) -> list[tuple[str, int]]:
        """Reads the machine and applies the differences. Returns them as (kind of change, GPU).

        A GPU that is missing from the reading counts as failed. If `read` raises, nothing changes.
        """
        observed = self._read().graph
        if self.graph is None:
            self.graph = observed
            return []
        return self.graph.reconcile(observed)

    def check_holders(self) -> None:
        """Reads the holders. Raises InvalidInput for unknown GPUs and cores; nothing changes then."""
        if self._holders is not None and self.graph is not None:
            self.graph = _with_holders(self.graph, self._holders())

    def publish(self) -> bool:
        """Publishes the object if it has changed. Returns True if it was published."""
        if self.graph is None:
            raise InvalidInput("publish(): no machine was read yet; expected check_hardware() before it")
        document = _io.flextopo_to_json(self.graph, self.name)
        if document == self.published:
            return False
        self._publish(document)
        self.published = document
        return True

    def run(
        self,
        interval_s: float = 60.0,
        poll_s: float = 1.0,
        stop: _StopEvent | None = None,
        tell: Callable[[str], object] = print,
    ) -> None:
        """Checks holders every `poll_s` and hardware every `interval_s`, and publishes changes, until `stop`
        is set.

        Errors of the first check are raised. Later errors are passed to `tell`, and the published object
        stays. After a failed publication the agent tries again after one poll, then after two, four and so
        on, at most `interval_s` apart.
        """
        if not 0 < poll_s <= interval_s:
            raise InvalidInput(f"poll_s: {repr_text(poll_s)}; expected more than 0, and at most interval_s")
        stop = stop or threading.Event()
        every = max(1, round(interval_s / poll_s))
        wait, pause = 0, 1
        self.check_hardware()
        self.check_holders()
        for number in itertools.count():
            if number and number % every == 0:
                self._report(self.check_hardware, "hardware", tell)
            if number:
                self._report(self.check_holders, "holders", tell)
            if wait > 0:
                wait -= 1
            else:
                try:
                    if self.publish():
                        tell(f"published {self.name}")
                    pause = 1
                except BackendError as error:
                    tell(f"publish: {error}; next attempt in {pause * poll_s:g} s")
                    wait, pause = pause - 1, min(2 * pause, every)
            if stop.wait(poll_s):
                return

    @staticmethod
    def _report(
        check: Callable[[], list[tuple[str, int]] | None], subject: str, tell: Callable[[str], object]
    ) -> None:
        try:
            for kind, gpu in check() or []:
                tell(f"GPU {gpu}: {kind.removeprefix('gpu_')}")
        except (BackendError, InvalidInput) as error:
            tell(f"{subject}: {error}; the published object stays")
