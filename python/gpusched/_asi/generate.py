# SPDX-License-Identifier: Apache-2.0
"""Generates small tables with the schema of the release (350 GB) and with the irregularities of its data."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._checks import integer
from .._optional import require
from ..errors import InvalidInput, explained
from .batch import Reals, Truths, Wholes
from .release import LAST_DAY
from .schema import COLUMNS, EXECUTION, NETWORK, NUMBER, POD, SERVER, TEXT, TRUTH

KINDS = (
    *(
        ("A10", 1, 128, 0.24),
        ("H20", 8, 192, 0.15),
        ("A100-80G", 8, 128, 0.10),
        ("XPU-A", 8, 192, 0.10),
        ("L20", 8, 128, 0.08),
    ),
    *(("T4", 2, 64, 0.12), ("H800", 8, 192, 0.08), ("L40S", 4, 96, 0.08), ("H20", 16, 384, 0.05)),
)
"""GPU model, GPUs, cores and share of the servers."""

SERVERS_PER_SWITCH, SWITCHES_PER_CLUSTER = 48, 4
TYPES = ("training", "online_inference", "offline_inference", "dev", "other", "unknown")
TYPE_SHARES = {"HP": (0.3, 0.5, 0.05, 0.08, 0.03, 0.04), "LP": (0.2, 0.1, 0.55, 0.05, 0.05, 0.05)}
MODELS = ("genai", "rec", "cv", "embedding", "dev", "unknown")
MODEL_SHARES = (0.45, 0.2, 0.12, 0.08, 0.05, 0.1)
NIGHT = (22, 8)
"""Hours at which the night, in which services sleep, begins and ends."""
REPLICAS = 4
CHANGE = 0.08
"""Share of the pods that end within an hour and are followed by another pod."""
NETWORK_HOURS = 48
"""Hours that the network table covers."""


class Places(NamedTuple):
    """Slots for pods; pods follow one another in a slot. The slots of a server never exceed its GPUs."""

    server: Wholes
    gpus: Reals
    cores: Reals
    workload: Wholes
    class_: np.ndarray
    type_: np.ndarray
    model: np.ndarray
    lends: Truths  # at night: a Standby pod, with a spot pod on its GPUs


def generate_asi_tables(
    folder: str | PathLike[str],
    *,
    servers: int = 200,
    days: int = 1,
    first_day: int = 109,
    pods_without_gpus: int = 2,
    seed: int = 0,
) -> None:
    """Writes small tables with the schema of the ASI trace's public release (350 GB), for tests and trials.

    Shares of models, classes and types only resemble the ASI paper's; do not draw conclusions from them. The
    tables contain all irregularities of the real ones: nulls, servers with 16 GPUs or without cores or
    switch, GPUs of Standby pods that spot pods borrow, parts of GPUs, pods without GPUs or server, pods that
    begin and end within an hour, GPU models such as A100-80G, and network traffic for only two days. Needs
    pyarrow.

    `folder`: must not contain tables; `read_asi_figures`, `read_asi_hour` and `read_asi_trace` of
    `gpusched.io` read it.
    `servers`: 1 to 100,000. `days`: 1 to 1,000 days of 24 hours, beginning with `first_day`.
    `pods_without_gpus`: per server, 0 to 100. `seed`: seed of all random numbers.

    Raises InvalidInput for options out of range and for folders with tables; BackendError if nothing can be
    written.
    """
    integer("servers", servers, 1, 100_000)
    integer("days", days, 1, 1000)
    integer("first_day", first_day, 0, LAST_DAY - days)
    integer("pods_without_gpus", pods_without_gpus, 0, 100)
    integer("seed", seed, 0, 2**63 - 1)
    root = Path(fspath(folder))
    if any((root / f"asi_opensource_{table}").exists() for table in COLUMNS):
        raise InvalidInput(f"{root}: has tables already; expected a folder without tables")
    writer = Writer(root)
    rng = np.random.default_rng(seed)
    fleet = make_fleet(rng, servers)
    places = make_places(rng, fleet, pods_without_gpus)
    life = Life(len(places.server))
    for number in range(24 * days):
        day, hour = first_day + number // 24, number % 24
        writer.write(SERVER, fleet_rows(fleet), (day, hour))
        writer.write(POD, pod_rows(rng, fleet, places, life, number), (day, hour))
        if number < NETWORK_HOURS:
            writer.write(NETWORK, traffic_rows(rng, fleet), (day, hour))
    writer.write(EXECUTION, execution_rows(rng, fleet, places, life, 24 * days))


class Writer:
    """Writes one file per table and hour, with exactly the columns of the schema."""

    def __init__(self, root: Path) -> None:
        self.pa, self.parquet, self.root = (
            require("pyarrow", "arrow"),
            require("pyarrow.parquet", "arrow"),
            root,
        )

    def write(self, table: str, columns: dict[str, Any], hour: tuple[int, int] | None = None) -> None:
        pa, folder = self.pa, self.root / f"asi_opensource_{table}"
        if hour is not None:
            folder = folder / f"day={hour[0]}" / f"hour={hour[1]:02d}"
        kinds = COLUMNS[table]
        assert list(columns) == list(kinds)
        whole = ("schedule_delay_sec", "ready_delay_sec")
        types = {TEXT: pa.string(), TRUTH: pa.bool_(), NUMBER: pa.float64()}
        arrays = {
            name: pa.array(column, pa.int64() if name in whole else types[kinds[name]], from_pandas=True)
            for name, column in columns.items()
        }
        made = pa.table(arrays)
        with explained(folder):
            folder.mkdir(parents=True, exist_ok=True)
            self.parquet.write_table(made, folder / "part-000.parquet")


def names(kind: str, numbers: Wholes) -> np.ndarray:
    """Names with 16 hexadecimal digits, like the salted hashes of the release."""
    mixed = (numbers.astype(np.uint64) + np.uint64(sum(kind.encode()))) * np.uint64(0x9E3779B97F4A7C15)
    return (
        np.array(bytearray(mixed.byteswap().tobytes().hex(), "ascii"))
        .view("S16")
        .astype("U16")
        .astype(object)
    )


def with_null(rng: np.random.Generator, column: np.ndarray, part: float) -> np.ndarray:
    """The column with this part of its values replaced by null."""
    out = column.astype(object)
    out[rng.random(len(out)) < part] = None
    return out


def without(rng: np.random.Generator, column: Reals, part: float) -> Reals:
    return np.where(rng.random(len(column)) < part, np.nan, column)


def make_fleet(rng: np.random.Generator, servers: int) -> dict[str, np.ndarray]:
    """Servers, sorted by kind, so that servers of the same kind share a switch."""
    kind = np.sort(rng.choice(len(KINDS), servers, p=[share for *_, share in KINDS]))
    switch = np.arange(servers) // SERVERS_PER_SWITCH
    return {
        "server_id": names("server", np.arange(servers)),
        "cluster_id": with_null(rng, names("cluster", switch // SWITCHES_PER_CLUSTER), 0.01),
        "asw_id": with_null(rng, names("switch", switch), 0.05),
        "gpu_spec_public": with_null(rng, np.array([name for name, *_ in KINDS], object)[kind], 0.005),
        "gpu_count": np.array([gpus for _, gpus, *_ in KINDS], float)[kind],
        "cpu_capacity_cores": without(rng, np.array([cores for _, _, cores, _ in KINDS], float)[kind], 0.01),
    }


def fleet_rows(fleet: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: fleet[name] for name in COLUMNS[SERVER]}


def make_places(rng: np.random.Generator, fleet: dict[str, np.ndarray], pods_without_gpus: int) -> Places:
    """Divides each server's GPUs into slots of 1, 2, 4, 8 or a part of one; adds slots without GPUs."""
    capacity = fleet["gpu_count"].copy()
    server, gpus = [], []
    left = np.flatnonzero(capacity > 0)
    while len(left):
        size = rng.choice([0.3, 0.5, 1.0, 2.0, 4.0, 8.0], len(left), p=[0.05, 0.05, 0.35, 0.2, 0.15, 0.2])
        size = np.minimum(size, capacity[left])
        server.append(left)
        gpus.append(size)
        capacity[left] = np.round(capacity[left] - size, 6)
        left = left[capacity[left] > 0]
    bare = np.repeat(np.arange(len(capacity)), pods_without_gpus)
    at = np.concatenate([*server, bare])
    asked = np.concatenate([*gpus, np.zeros(len(bare))])
    # A workload has up to four equal slots, and so equal pods.
    order = np.lexsort((at, fleet["gpu_spec_public"][at].astype(str), asked))
    workload = np.empty(len(at), np.int64)
    workload[order] = np.arange(len(at)) // REPLICAS
    many = len(at) // REPLICAS + 1
    class_ = rng.choice(np.array(["HP", "LP", "Other"], object), many, p=[0.68, 0.25, 0.07])
    high = rng.choice(np.array(TYPES, object), many, p=TYPE_SHARES["HP"])
    low = rng.choice(np.array(TYPES, object), many, p=TYPE_SHARES["LP"])
    type_ = np.where(class_ == "HP", high, low)
    model = rng.choice(np.array(MODELS, object), many, p=MODEL_SHARES)
    cores = rng.choice([4, 8, 8, 12, 16, 24], many)[workload]
    sleeps = (class_ == "HP") & (type_ == "online_inference") & (rng.random(many) < 0.4)
    return Places(
        server=at,
        gpus=asked,
        cores=np.where(asked > 0, np.ceil(asked * cores), rng.choice([0.5, 1, 4], len(at))),
        workload=workload,
        class_=class_[workload],
        type_=type_[workload],
        model=model[workload],
        lends=sleeps[workload] & (asked >= 1),
    )


class Life:
    """The running pod of each slot, its start, and all ended pods."""

    def __init__(self, places: int) -> None:
        self.generation, self.since = np.zeros(places, np.int64), np.zeros(places)
        self.ended: list[tuple[Wholes, Wholes, Reals]] = []  # places, generations, hours

    def renew(self, places: Wholes, now: Reals) -> None:
        self.ended.append((places, self.generation[places].copy(), now - self.since[places]))
        self.generation[places] += 1
        self.since[places] = now


def pod_rows(
    rng: np.random.Generator, fleet: dict[str, np.ndarray], places: Places, life: Life, number: int
) -> dict[str, np.ndarray]:
    """The pods of an hour: running, beginning and ending pods, and spot pods on the GPUs of Standby pods."""
    hour, every = number % 24, np.arange(len(places.server))
    asleep = places.lends & ((hour >= NIGHT[0]) | (hour < NIGHT[1]))
    changes = (rng.random(len(every)) < CHANGE) & ~asleep
    cut = np.round(rng.random(len(every)), 6)
    at = np.flatnonzero(changes)
    before = (
        at,
        life.generation[at].copy(),
        cut[at],
        rng.choice(["Succeeded", "Succeeded", "Failed"], len(at)),
    )
    life.renew(at, number + cut[at])
    runs = every[rng.random(len(every)) < np.where(asleep, 1, 0.95)]
    part = np.where(changes[runs], np.round(1 - cut[runs], 6), 1.0)
    awake = rng.choice(["Running", "Pending", "Unknown"], len(runs), p=[0.97, 0.02, 0.01])
    states = np.where(asleep[runs], "Standby", awake)
    now = (runs, life.generation[runs], part, states)
    guests = np.flatnonzero(asleep & (rng.random(len(every)) < 0.9))
    borrowed = (
        guests,
        np.full(len(guests), -1 - number // 6),
        np.ones(len(guests)),
        np.full(len(guests), "Running"),
    )
    place, generation, part, state = (np.concatenate(rows) for rows in zip(before, now, borrowed))
    guest = np.arange(len(place)) >= len(place) - len(guests)
    return columns_of(rng, fleet, places, place, generation, part, state.astype(object), guest)


def columns_of(
    rng: np.random.Generator,
    fleet: dict[str, np.ndarray],
    places: Places,
    place: Wholes,
    generation: Wholes,
    part: Reals,
    state: np.ndarray,
    guest: Truths,
) -> dict[str, np.ndarray]:
    server, gpus = places.server[place], places.gpus[place]
    size, has = len(place), gpus > 0
    type_ = np.where(guest, "offline_inference", places.type_[place])
    model = np.where(guest, "genai", places.model[place])
    # Less than the request if the GPUs were held for a part of the hour; sometimes a little less in addition.
    used = np.round(gpus * part * np.where(rng.random(size) < 0.1, 0.98, 1.0), 6)
    busy = rng.random(size)
    return {
        "pod_id": pod_names(place, generation, len(places.server)),
        "workload_id": workload_names(rng, places, place, generation),
        "server_id": with_null(rng, fleet["server_id"][server], 0.005),
        "cluster_id": fleet["cluster_id"][server],
        "state_public": with_null(rng, state, 0.002),
        "gpu_spec_public": fleet["gpu_spec_public"][server],
        "server_gpu_count": fleet["gpu_count"][server],
        "server_cpu_capacity_cores": fleet["cpu_capacity_cores"][server],
        "priority_class": with_null(rng, np.where(guest, "LP", places.class_[place]), 0.005),
        "job_type_public": with_null(rng, type_, 0.01),
        "model_type_public": with_null(rng, model, 0.01),
        "is_genai_request": with_null(rng, model == "genai", 0.02),
        "gpu_request": np.where(has, gpus, np.where(rng.random(size) < 0.5, 0.0, np.nan)),
        "gpu_mem_request": without(rng, 80 * gpus, 0.03),
        "cpu_request_cores": without(rng, places.cores[place], 0.01),
        "used_gpu_hours": without(rng, used, 0.01),
        "avg_gpu_sm_util": without(rng, np.round(100 * gpus * busy, 3), 0.05),
        "avg_gpu_mem_gib": without(rng, np.round(80 * gpus * busy**0.5, 3), 0.05),
        "avg_cpu_request_util": without(rng, np.round(busy**2, 4), 0.05),
        "avg_memory_util": without(rng, np.round(busy**0.5, 4), 0.05),
        "ready_status": with_null(rng, rng.random(size) < 0.97, 0.02),
        "schedule_delay_sec": without(rng, rng.integers(0, 600, size).astype(float), 0.3),
        "ready_delay_sec": without(rng, rng.integers(0, 300, size).astype(float), 0.3),
    }


def pod_names(place: Wholes, generation: Wholes, places: int) -> np.ndarray:
    return names("pod", generation * places + place)


def workload_names(rng: np.random.Generator, places: Places, place: Wholes, generation: Wholes) -> np.ndarray:
    """Names of workloads; some pods have none."""
    return with_null(rng, names("workload", generation * len(places.server) + places.workload[place]), 0.1)


def traffic_rows(rng: np.random.Generator, fleet: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    known = np.flatnonzero(rng.random(len(fleet["server_id"])) < 0.95)
    rx, tx = (
        np.round(rng.lognormal(-2, 2, len(known)), 6) * (rng.random(len(known)) < 0.9) for _ in range(2)
    )
    return {
        "server_id": fleet["server_id"][known],
        "rx_gibps_avg": without(rng, rx, 0.02),
        "tx_gibps_avg": without(rng, tx, 0.02),
    }


def execution_rows(
    rng: np.random.Generator, fleet: dict[str, np.ndarray], places: Places, life: Life, end: int
) -> dict[str, np.ndarray]:
    """One row per pod with GPUs, except spot pods on borrowed GPUs."""
    every = np.arange(len(places.server))
    last: tuple[Wholes, Wholes, Reals] = (every, life.generation, end - life.since)
    parts: Sequence[tuple[Wholes, Wholes, Reals]] = [*life.ended, last]
    place, generation, hours = (np.concatenate(rows) for rows in zip(*parts))
    of = places.gpus[place] > 0
    place, generation, hours = place[of], generation[of], hours[of]
    size, server = len(place), places.server[place]
    return {
        "pod_id": pod_names(place, generation, len(places.server)),
        "workload_id": workload_names(rng, places, place, generation),
        "server_id": with_null(rng, fleet["server_id"][server], 0.01),
        "gpu_spec_public": fleet["gpu_spec_public"][server],
        "priority_class": places.class_[place],
        "job_type_public": places.type_[place],
        "model_type_public": places.model[place],
        "is_genai_request": places.model[place] == "genai",
        "gpu_request": places.gpus[place],
        "duration_hours": without(rng, np.round(hours, 6), 0.01),
        "schedule_delay_sec": without(rng, rng.integers(0, 600, size).astype(float), 0.3),
        "ready_delay_sec": without(rng, rng.integers(0, 300, size).astype(float), 0.3),
        "ready_status": with_null(rng, rng.random(size) < 0.97, 0.02),
        "schedule_status": np.ones(size, bool),
    }


generate_asi_tables.__module__ = "gpusched.sim"
