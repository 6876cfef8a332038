# SPDX-License-Identifier: Apache-2.0
"""Figures of the ASI release from generated tables, against a computation that goes through the rows one by
one in exact fractions.
"""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import asi_tables
import gpusched as gs
import pytest
from messages import refuses

pytest.importorskip("pyarrow")

DAY, DAYS = 109, 2
SHAPES = [(1, 8), (1, 12), (4, 32), (4, 48), (4, 64), (8, 64), (8, 96), (8, 128)]
SHOWN = {"A10", "L20", "H20", "A100", "H800", "XPU-A"}
JOBS = ["training", "online_inference", "offline_inference", "dev"]
MODELS = ["genai", "rec", "cv", "embedding", "dev"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root: Path = tmp_path_factory.mktemp("asi")
    gs.sim.generate_asi_tables(root, servers=260, days=DAYS, first_day=DAY, pods_without_gpus=1, seed=5)
    return root


@pytest.fixture(scope="module")
def figures(folder: Path) -> dict[str, Any]:
    return gs.io.read_asi_figures(folder, days=(DAY, DAY + DAYS - 1))


@pytest.fixture(scope="module")
def pods(folder: Path) -> list[tuple[int, int, dict[str, Any]]]:
    return list(asi_tables.read(folder, "pod_hourly"))


@pytest.fixture(scope="module")
def servers(folder: Path) -> list[tuple[int, int, dict[str, Any]]]:
    return list(asi_tables.read(folder, "server_hourly"))


def exact(number: float | None) -> Fraction:
    """Null is none; the tables have six digits."""
    return Fraction(round((number or 0) * 10**6), 10**6)


def shown(bucket: str | None) -> str:
    base = (bucket or "").split("-")[0]
    return base if base in SHOWN else bucket or ""


@pytest.fixture(scope="module")
def sums(pods: Any) -> dict[Any, dict[str, Fraction]]:
    """By day, hour and server: A, S, L, L of pods that are not Standby, GPUs and cores that HP pods ask for,
    HP pods.
    """
    out: dict[Any, dict[str, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    for day, hour, p in pods:
        if p["server_id"] is None:
            continue
        s = out[day, hour, p["server_id"]]
        used, asked = exact(p["used_gpu_hours"]), exact(p["gpu_request"])
        standby = p["state_public"] == "Standby"
        if p["priority_class"] == "HP":
            s["pods"] += 1
            s["cores"] += exact(p["cpu_request_cores"])
            if asked > 0:
                s["gpus"] += asked
                s["S" if standby else "A"] += used
        elif p["priority_class"] == "LP" and asked > 0:
            s["L"] += used
            if not standby:
                s["LA"] += used
    return out


def test_figure_9(figures: Any, servers: Any, sums: Any) -> None:
    hours: dict[Any, list[tuple[Fraction, Fraction]]] = defaultdict(list)
    for day, hour, server in servers:
        if hour % 2 and hour != 23:
            continue
        s, gpus = sums[day, hour, server["server_id"]], exact(server["gpu_count"])
        rest = max(s["S"] - s["L"], Fraction(0))
        both = min(s["A"] + s["LA"], gpus) + rest
        hours[shown(server["gpu_spec_public"]), day, hour].append(((s["A"] + rest) / gpus, both / gpus))
    means: dict[str, list[list[Fraction]]] = defaultdict(lambda: [[], []])
    for (model, _, _), ratios in hours.items():
        for column, of in enumerate(zip(*ratios)):
            means[model][column].append(Fraction(sum(of), len(of)))
    found = {row.gpu_model: (row.hp_pct, row.hp_and_lp_pct) for row in figures["fig9"]}
    assert set(found) == set(means) - {""}
    for model, columns in found.items():
        for got, hourly in zip(columns, means[model]):
            assert got == pytest.approx(float(100 * sum(hourly) / len(hourly)), rel=1e-12)


def test_figure_13(figures: Any, servers: Any, sums: Any) -> None:
    totals: dict[Any, list[Fraction]] = {shape: [Fraction(0)] * 4 for shape in SHAPES}
    hours = set()
    for day, hour, server in servers:
        gpus = exact(server["gpu_count"])
        if hour % 2 or gpus == 16:
            continue
        hours.add((day, hour))
        s = sums[day, hour, server["server_id"]]
        idle = max(gpus - (s["A"] + max(s["S"] - s["L"], 0)), Fraction(0))
        cores = max(exact(server["cpu_capacity_cores"]) - s["cores"], 0)
        for g, c in SHAPES:
            t = totals[g, c]
            whole = math.floor(idle)
            if cores >= c and idle >= g and whole >= g:
                t[0] += idle - whole
            if cores >= c and 0 < whole < g:
                t[1] += whole
            if cores < c:
                t[2] += g if idle >= g else idle
            t[3] += idle
    table = figures["fig13"]
    assert [(row.gpus, row.cpu_cores) for row in table] == SHAPES
    for row in table:
        want = [float(t / len(hours)) for t in totals[row.gpus, row.cpu_cores]]
        assert [row.fractional, row.stranded, row.insufficient_cpu, row.total_idle] == pytest.approx(
            want, rel=1e-12
        )
        assert row.stranded_pct == pytest.approx(100 * want[1] / want[3])
    assert min(table[2].fractional, table[2].stranded, table[7].insufficient_cpu) > 0


def test_figure_14(figures: Any, servers: Any, sums: Any) -> None:
    slots: dict[Any, int] = defaultdict(int)
    for day, hour, server in servers:
        s, model = sums[day, hour, server["server_id"]], shown(server["gpu_spec_public"])
        if (
            hour != 10
            or not s["pods"]
            or server["asw_id"] is None
            or model not in ("H20", "XPU-A", "L20", "A100")
        ):
            continue
        gpus = max(int(server["gpu_count"]) - math.floor(s["gpus"]), 0)
        cores = max(math.floor((exact(server["cpu_capacity_cores"]) - s["cores"]) / 12), 0)
        for name in (model, "*"):
            for column in ("cluster_id", "asw_id"):
                if server[column] is not None:
                    slots[day, name, column, server[column]] += min(gpus, cores)
    want: dict[Any, int] = defaultdict(int)
    for (day, name, column, _), number in slots.items():
        for size in (128, 256):
            want[day, name, size, column] += number // size
    found = {(row.day, row.gpu_model, row.gpus): (row.across, row.within) for row in figures["fig14"]}
    assert set(found) == {key[:3] for key in want}
    for key, (across, within) in found.items():
        assert (across, within) == (want[(*key, "cluster_id")], want[(*key, "asw_id")]), key
    assert any(across > within for across, within in found.values())


def test_figure_16(figures: Any, sums: Any) -> None:
    by_hour: dict[Any, list[dict[str, Fraction]]] = defaultdict(list)
    for (day, hour, _), s in sums.items():
        by_hour[day, hour].append(s)
    assert [(row.day, row.hour) for row in figures["fig16"]] == [
        (DAY + d, h) for d in range(DAYS) for h in range(24)
    ]
    for row in figures["fig16"]:
        lending = [s for s in by_hour[row.day, row.hour] if s["S"] > 0]
        assert row.standby_gpu_hours == pytest.approx(float(sum(s["S"] for s in lending)), rel=1e-12)
        if lending:
            assert row.standby_used == pytest.approx(
                float(sum(s["L"] / s["S"] for s in lending) / len(lending)), rel=1e-12
            )
        else:
            assert row.standby_used is None
    assert any(row.standby_used for row in figures["fig16"]) and any(
        row.standby_used is None for row in figures["fig16"]
    )


def test_table_1_and_the_left_of_figure_4(figures: Any, servers: Any) -> None:
    gpus = {(s["server_id"], shown(s["gpu_spec_public"])): int(s["gpu_count"]) for _, _, s in servers}
    names, models = {name for name, _ in gpus}, {model for _, model in gpus}
    assert list(figures["table1"][0]) == [DAYS, len(names), sum(gpus.values()), len(models)]
    for row in figures["fig4_left"]:
        of = [count for (_, model), count in gpus.items() if model == row.gpu_model]
        assert (row.servers, row.gpus) == (len(of), sum(of))
        assert row.share_pct == pytest.approx(100 * sum(of) / sum(gpus.values()))


def test_figures_2_to_4(figures: Any, pods: Any) -> None:
    types: dict[Any, Fraction] = defaultdict(Fraction)
    models: dict[Any, Fraction] = defaultdict(Fraction)
    classes: dict[Any, int] = defaultdict(int)
    for _, _, p in pods:
        used, class_ = exact(p["used_gpu_hours"]), p["priority_class"]
        job, model = p["job_type_public"], p["model_type_public"]
        if exact(p["gpu_mem_request"]) > 0 and job not in (None, "unknown"):
            types[job, "all"] += used
            types[job, class_] += used
        if exact(p["gpu_request"]) > 0:
            classes[shown(p["gpu_spec_public"]), class_] += 1
            if model not in (None, "unknown") and job is not None:
                for group in (job, shown(p["gpu_spec_public"])):
                    models[group, "all"] += used
                    models[group, model] += used
    whole = sum(hours for (_, kind), hours in types.items() if kind == "all")
    assert {row.job_type for row in figures["fig2"]} == {job for job, _ in types}
    for row in figures["fig2"]:
        hp, lp = types[row.job_type, "HP"], types[row.job_type, "LP"]
        assert row.gpu_hours == pytest.approx(float(types[row.job_type, "all"]))
        want = (100 * types[row.job_type, "all"] / whole, 100 * hp / (hp + lp), 100 * lp / (hp + lp))
        assert (row.share_pct, row.hp_pct, row.lp_pct) == pytest.approx(tuple(map(float, want)))
    for name, groups in (("fig3_left", JOBS), ("fig3_right", SHOWN)):
        assert {row[0] for row in figures[name]} == set(groups)
        for row in figures[name]:
            assert row.gpu_hours == pytest.approx(float(models[row[0], row.model_type]))
            assert row.share_pct == pytest.approx(
                float(100 * models[row[0], row.model_type] / models[row[0], "all"])
            )
    for row in figures["fig4_right"]:
        assert row.hp_pod_hours == classes[row.gpu_model, "HP"]
        assert row.lp_pod_hours == classes[row.gpu_model, "LP"]


def sm_of(p: dict[str, Any]) -> float | None:
    sm = p["avg_gpu_sm_util"]
    return None if sm is None else sm / (100 * p["gpu_request"])


def test_figures_5_and_6(figures: Any, pods: Any) -> None:
    week: dict[Any, list[Any]] = defaultdict(lambda: [Fraction(0), []])
    days: dict[Any, Fraction] = defaultdict(Fraction)
    for day, hour, p in pods:
        asked, job = exact(p["gpu_request"]), p["job_type_public"]
        if (
            asked > 0
            and p["priority_class"] == "HP"
            and p["ready_status"]
            and p["state_public"] != "Standby"
            and job in JOBS
        ):
            week[day, hour, job][0] += asked
            week[day, hour, job][1] += [sm_of(p)] if sm_of(p) is not None else []
        if exact(p["gpu_mem_request"]) > 0 and p["gpu_spec_public"] in ("A10", "A100", "H20", "L20", "XPU-A"):
            for column in (p["priority_class"], "all"):
                days[p["gpu_spec_public"], day, column] += exact(p["used_gpu_hours"])
    assert {(row.day, row.hour, row.job_type) for row in figures["fig5"]} == set(week)
    for row in figures["fig5"]:
        gpus, sm = week[row.day, row.hour, row.job_type]
        assert (row.gpus, row.pods) == (pytest.approx(float(gpus)), len(sm))
        assert row.sm_utilisation == pytest.approx(sum(sm) / len(sm))
    assert {(row.gpu_model, row.day) for row in figures["fig6"]} == {key[:2] for key in days}
    for row in figures["fig6"]:
        for column, name in (("hp_gpu_hours", "HP"), ("lp_gpu_hours", "LP"), ("gpu_hours", "all")):
            assert row[column] == pytest.approx(float(days[row.gpu_model, row.day, name]))


def assert_distributed(table: Any, wanted: dict[Any, list[float]]) -> None:
    assert {tuple(row[:2]) for row in table} == set(wanted)
    for row in table:
        numbers = sorted(wanted[tuple(row[:2])])
        assert row["count"] == len(numbers)
        if not numbers:
            continue
        assert row["mean"] == pytest.approx(sum(numbers) / len(numbers))
        for percent in (1, 5, 10, 25, 50, 75, 90, 95, 99):
            of_rank = numbers[max(1, math.ceil(len(numbers) * percent / 100)) - 1]
            assert row[f"p{percent}"] == pytest.approx(of_rank, rel=0.00101, abs=1e-9), (row[:2], percent)


def test_figures_7_and_8(figures: Any, folder: Path, pods: Any) -> None:
    runs: dict[str, dict[Any, list[float]]] = {
        "left": {(job, "hours"): [] for job in JOBS},
        "right": {(m, "hours"): [] for m in MODELS},
    }
    for _, _, e in asi_tables.read(folder, "job_execution_summary"):
        for side, column in (("left", "job_type_public"), ("right", "model_type_public")):
            if e["duration_hours"] is not None and (e[column], "hours") in runs[side]:
                runs[side][e[column], "hours"].append(e["duration_hours"])
    for side, wanted in runs.items():
        assert_distributed(figures[f"fig7_{side}"], wanted)
    hourly: dict[Any, list[Any]] = defaultdict(lambda: [Fraction(0), Fraction(0), False])
    for day, hour, p in pods:
        if exact(p["gpu_request"]) > 0 and p["workload_id"] is not None:
            sums = hourly[p["workload_id"], day, hour]
            sums[0] += exact(p["gpu_request"])
            sums[1] += exact(p["cpu_request_cores"])
            sums[2] |= bool(p["is_genai_request"])
    best: dict[str, Any] = {}
    for (workload, day, hour), (gpus, cores, genai) in hourly.items():
        rank = (-gpus, day, hour)
        if workload not in best or rank < best[workload][0]:
            best[workload] = (rank, cores, genai)
    wanted = {
        (name, measure): [
            float(-rank[0] if measure == "gpus" else cores)
            for rank, cores, genai in best.values()
            if genai or name == "all"
        ]
        for name in ("all", "genai")
        for measure in ("gpus", "cores")
    }
    assert_distributed(figures["fig8"], wanted)


def test_figures_10_to_12(figures: Any, folder: Path, pods: Any, servers: Any) -> None:
    parts: dict[Any, list[Fraction]] = defaultdict(list)
    ratios: dict[Any, list[float]] = {(job, "cores_per_gpu"): [] for job in JOBS}
    used: dict[Any, list[float]] = {
        (job, m): [] for job in JOBS for m in ("cpu", "memory", "sm", "gpu_memory_gib")
    }
    on_server: dict[Any, set[str]] = defaultdict(set)
    for day, hour, p in pods:
        asked, job = exact(p["gpu_request"]), p["job_type_public"]
        if asked == 0:
            continue
        if hour % 2 == 0 and p["priority_class"] == "HP":
            parts[day, hour].append(asked)
        if job not in JOBS:
            continue
        on_server[day, hour, p["server_id"]].add(job)
        if hour % 2 == 0:
            ratios[job, "cores_per_gpu"].append(math.ceil(exact(p["cpu_request_cores"]) / math.ceil(asked)))
        if p["ready_status"]:
            for measure, number in (
                ("cpu", p["avg_cpu_request_util"]),
                ("memory", p["avg_memory_util"]),
                ("sm", sm_of(p)),
                ("gpu_memory_gib", p["avg_gpu_mem_gib"]),
            ):
                used[job, measure] += [] if number is None else [number]
    pods_part = [Fraction(sum(gpus < 1 for gpus in hour), len(hour)) for hour in parts.values()]
    gpus_part = [sum(gpus for gpus in hour if gpus < 1) / sum(hour) for hour in parts.values()]
    want = [float(100 * sum(of) / len(of)) for of in (pods_part, gpus_part)]
    assert list(figures["fig10_left"][0]) == pytest.approx(want) and min(want) > 0
    assert_distributed(figures["fig10_right"], ratios)
    assert_distributed(figures["fig11"], used)
    eight = {(day, hour, s["server_id"]) for day, hour, s in servers if s["gpu_count"] == 8}
    traffic: dict[Any, list[float]] = {tuple(row[:2]): [] for row in figures["fig12"]}
    assert len(traffic) == 12
    for day, hour, n in asi_tables.read(folder, "network_hourly"):
        jobs = (
            ",".join(sorted(on_server[day, hour, n["server_id"]]))
            if (day, hour, n["server_id"]) in eight
            else ""
        )
        for way in ("rx_gibps", "tx_gibps"):
            if (jobs, way) in traffic and (n[f"{way}_avg"] or 0) > 0.001:
                traffic[jobs, way].append(n[f"{way}_avg"])
    assert_distributed(figures["fig12"], traffic)


def test_all_quirks_are_in_the_generated_tables(pods: Any, servers: Any) -> None:
    never_null = {"pod_id", "server_gpu_count"}
    for column in asi_tables.TYPES["pod_hourly"]:
        some = any(p[column] is None for _, _, p in pods)
        assert some or column in never_null, column
        assert any(p[column] is not None for _, _, p in pods), column
    states = {"Standby", "Running", "Pending", "Succeeded", "Failed", "Unknown", None}
    assert {p["state_public"] for _, _, p in pods} == states
    assert {p["priority_class"] for _, _, p in pods} == {"HP", "LP", "Other", None}
    assert {0.3, 0.5, 1, 2, 4, 8, 0, None} <= {p["gpu_request"] for _, _, p in pods}
    assert {16, 8, 4, 2, 1} == {s["gpu_count"] for _, _, s in servers}
    for column in ("asw_id", "cpu_capacity_cores"):
        assert any(s[column] is None for _, _, s in servers), column
    assert any((s["gpu_spec_public"] or "").startswith("A100-") for _, _, s in servers)


def test_neither_batches_nor_the_order_of_rows_matter(
    figures: Any, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import random

    from gpusched._asi import release

    rows = [row for day, hour, row in asi_tables.read(folder, "pod_hourly") if (day, hour) == (DAY, 10)]
    machines = [
        row for day, hour, row in asi_tables.read(folder, "server_hourly") if (day, hour) == (DAY, 10)
    ]
    tables = []
    for name, batch, seed in (("a", 1 << 17, None), ("b", 101, 1)):
        if seed is not None:
            random.Random(seed).shuffle(rows)
        cut = len(rows) // 3
        for part in range(2):  # in two files
            here = rows[:cut] if part == 0 else rows[cut:]
            asi_tables.write(tmp_path / name, "pod_hourly", DAY, 10, here, name=f"part-{part:03d}")
        asi_tables.write(tmp_path / name, "server_hourly", DAY, 10, machines)
        monkeypatch.setattr(release, "BATCH_ROWS", batch)
        tables.append(gs.io.read_asi_figures(tmp_path / name, days=(DAY, DAY), partial=True))
    assert list(tables[0]) == list(tables[1])
    for name in ("table1", "fig2", "fig3_left", "fig6", "fig9", "fig10_left", "fig13", "fig14", "fig16"):
        assert tables[0][name] == tables[1][name], name


def test_generated_tables_follow_from_their_seed(folder: Path, tmp_path: Path) -> None:
    gs.sim.generate_asi_tables(tmp_path / "a", servers=30, seed=1)
    gs.sim.generate_asi_tables(tmp_path / "b", servers=30, seed=1)
    gs.sim.generate_asi_tables(tmp_path / "c", servers=30, seed=2)
    a, b, c = ([row for *_, row in asi_tables.read(tmp_path / name, "pod_hourly")] for name in "abc")
    assert a == b != c
    with pytest.raises(gs.InvalidInput, match="has tables already"):
        gs.sim.generate_asi_tables(folder)
    with refuses("servers 0 1 100000"):
        gs.sim.generate_asi_tables(tmp_path / "d", servers=0)


def test_frames_hold_the_tables_in_fixed_types(figures: dict[str, Any]) -> None:
    pytest.importorskip("pandas")
    assert any(
        gpus % 1 for gpus in figures["fig5"].column("gpus")
    )  # parts of GPUs, which whole numbers would lose
    for name, table in figures.items():
        arrow, frame = table.to_arrow(), table.to_pandas()
        assert arrow.schema == table[:0].to_arrow().schema and list(frame.dtypes) == list(
            table[:0].to_pandas().dtypes
        ), name
        for column in table.columns:
            there = table.column(column)
            assert arrow[column].to_pylist() == there, (name, column)
            assert [None if x != x else x for x in frame[column].tolist()] == there, (name, column)


def drawn(ax: Any) -> list[tuple[str, list[float]]]:
    return [(line.get_label(), list(line.get_ydata())) for line in ax.get_lines()]


def test_plots_over_time_agree_with_the_figures(figures: Any) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    week = gs.plotting.plot_asi_figure(figures, "fig5")
    gpus, sm = week.figure.axes
    types = list(dict.fromkeys(figures["fig5"].column("job_type")))
    assert [len(points) for _, points in drawn(gpus)] == [
        figures["fig5"].column("job_type").count(name) for name in types
    ]
    for name, (_, points) in zip(types, drawn(sm)):
        of_type = [
            row.sm_utilisation
            for row in figures["fig5"]
            if row.job_type == name and row.sm_utilisation is not None
        ]
        assert points == pytest.approx([100 * min(value, 1) for value in of_type])
    # The paper reads Figure 6 for HP jobs.
    days = drawn(gs.plotting.plot_asi_figure(figures, "fig6"))
    assert [value for _, points in days for value in points] == [row.hp_gpu_hours for row in figures["fig6"]]
    # LP pods on GPUs that were not lent do not raise the share above all lent GPUs.
    _, used = gs.plotting.plot_asi_figure(figures, "fig16").figure.axes
    ((_, points),) = drawn(used)
    assert points == pytest.approx(
        [100 * min(row.standby_used, 1) for row in figures["fig16"] if row.standby_used is not None]
    )
    assert max(row.standby_used or 0 for row in figures["fig16"]) > 1
    pyplot.close("all")
