"""FlexTopo's agent: keeps the object of a machine as the machine is."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from ._core import io, topology
from .errors import BackendError, InvalidInput, repr_text

Holders = Mapping[str, Mapping[str, Sequence[Any]]]
"""Of each pod its GPUs (by index or UUID) and cores."""

PARTS = ("gpus", "cores")


class Waits(Protocol):
    """What ends a loop, such as a `threading.Event`."""

    def wait(self, timeout: float, /) -> bool: ...


def with_holders(graph: topology.HardwareGraph, holders: Holders) -> topology.HardwareGraph:
    """The machine with these holders of GPUs and cores, and no others; a core group is held by who holds its lowest held core.

    A GPU that has failed stays so, and its holder is noted. Raises InvalidInput for unknown GPUs and cores, and what two pods hold.
    """
    if not isinstance(holders, Mapping):
        raise InvalidInput(f"holders: {repr_text(holders)}; expected a dict by pod")
    vertices, edges = graph.vertices, graph.edges
    numbers = {(v["kind"], str(v["id"])): at for at, v in enumerate(vertices)}
    numbers |= {("gpu", v["uuid"]): at for at, v in enumerate(vertices) if v.get("uuid")}
    users: dict[int, str] = {}
    problems: list[str] = []
    for pod, parts in holders.items():
        if not isinstance(parts, Mapping) or set(parts) - set(PARTS):
            problems.append(f"holders[{pod!r}]: {repr_text(parts)}; expected gpus and cores")
            continue
        for part, held in parts.items():
            for which in held if isinstance(held, Sequence) and not isinstance(held, str) else [held]:
                at = numbers.get((part.removesuffix("s"), str(which)))
                if at is None:
                    problems.append(f"holders[{pod!r}].{part}: {which!r}; expected one that the machine has")
                elif users.setdefault(at, pod) != pod:
                    problems.append(f"holders[{pod!r}].{part}: {which!r} is held by {users[at]!r} as well")
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
    return topology.HardwareGraph(vertices, edges)


class FlexTopoAgent:
    """Keeps the FlexTopo object of a machine as the machine is: reads, reconciles, publishes (FlexTopo, section 3.3).

    The hardware is read now and then, who holds what is asked for often, and the object is published only where it differs from what was
    published last.

    Parameters
    ----------
    name
        of the object: the node's
    read
        the machine as it is now, such as `gpusched.io.read_this_machine`
    publish
        takes the object, a dict
    holders
        asked for who holds what: by pod a dict with `gpus` (index or UUID) and `cores`, such as `{"team/pod": {"gpus": [0, 1]}}`. None:
        whoever held something in the first reading holds it.
    """

    def __init__(
        self,
        name: str,
        read: Callable[[], io.HardwareReading],
        publish: Callable[[dict[str, Any]], object],
        holders: Callable[[], Holders] | None = None,
    ) -> None:
        self.name = name
        self.graph: topology.HardwareGraph | None = None
        """The machine as it was last known."""
        self.published: dict[str, Any] | None = None
        """What was published last."""
        self._read, self._publish, self._holders = read, publish, holders

    def check_hardware(self) -> list[tuple[str, int]]:
        """Reads the machine, and takes over what is different: (kind of change, GPU). A GPU that the reading lacks has failed.

        Raises what `read` raises; nothing is changed then.
        """
        observed = self._read().graph
        if self.graph is None:
            self.graph = observed
            return []
        return self.graph.reconcile(observed)

    def check_holders(self) -> None:
        """Asks who holds what. Raises InvalidInput for GPUs and cores that the machine does not have; nothing is changed then."""
        if self._holders is not None and self.graph is not None:
            self.graph = with_holders(self.graph, self._holders())

    def publish(self) -> bool:
        """Publishes the object if it differs from the last one. Returns whether it did. Raises what the publisher raises."""
        if self.graph is None:
            raise InvalidInput("publish(): expected a machine that was read; check_hardware() reads it")
        document = io.flextopo_to_json(self.graph, self.name)
        if document == self.published:
            return False
        self._publish(document)
        self.published = document
        return True

    def run(
        self,
        interval_s: float = 60.0,
        poll_s: float = 1.0,
        stop: Waits | None = None,
        tell: Callable[[str], object] = print,
    ) -> None:
        """Checks holders every `poll_s` and hardware every `interval_s` until `stop` is set, and publishes what changed.

        The first check raises its errors. Later ones are told, and what was published stays; a publisher that fails is called again
        after one poll, then two, four and so on, `interval_s` apart at most.
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
                self._told(self.check_hardware, "hardware", tell)
            if number:
                self._told(self.check_holders, "holders", tell)
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
    def _told(check: Callable[[], list[tuple[str, int]] | None], what: str, tell: Callable[[str], object]) -> None:
        try:
            for kind, gpu in check() or []:
                tell(f"GPU {gpu}: {kind.removeprefix('gpu_')}")
        except (BackendError, InvalidInput) as error:
            tell(f"{what}: {error}; what was published stays")


FlexTopoAgent.__module__ = "gpusched.topology"
