# SPDX-License-Identifier: Apache-2.0
"""Tables of the ASI release by hand: a figure that can be checked on paper, quirks, broken tables, snapshots
and traces.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import asi_tables
import gpusched as gs
import pytest
from asi_tables import Rows, pod, server
from gpusched import cli
from messages import mentions, naming, refuses

pytest.importorskip("pyarrow")


def one_hour(folder: Path, pods: list[dict[str, Any]], servers: list[dict[str, Any]], hour: int = 10) -> Path:
    asi_tables.write(folder, "pod_hourly", 109, hour, pods)
    asi_tables.write(folder, "server_hourly", 109, hour, servers)
    return folder


def figures_of(folder: Path) -> dict[str, Any]:
    return gs.io.read_asi_figures(folder, days=(109, 109), partial=True)


PODS = [
    pod("standby", "a", 4.0, state_public="Standby", cpu_request_cores=40.0),
    pod("spot", "a", 1.0, priority_class="LP", cpu_request_cores=60.0),
    pod("active", "a", 2.0, cpu_request_cores=100.0),
    pod("part", "a", 0.5, cpu_request_cores=1.0, job_type_public="dev"),
    pod("bare", "a", None, cpu_request_cores=1.0),
    pod("other", "a", 1.0, priority_class="Other", cpu_request_cores=10.0),
    pod("big", "b", 16.0, cpu_request_cores=20.0),
]
SERVERS = [server("a", 8.0, 192.0), server("b", 16.0, 384.0)]


def test_a_server_by_hand(tmp_path: Path) -> None:
    """A = 2.5, S = 4, L = 1, so r = 3: 2.5 GPUs and 192 - 142 = 50 cores are idle; 16 GPUs are left out of
    Figure 13.
    """
    found = figures_of(one_hour(tmp_path, PODS, SERVERS))
    row = found["fig9"][0]
    assert (row.hp_pct, row.hp_and_lp_pct) == (100 * (5.5 / 8 + 1) / 2, 100 * (6.5 / 8 + 1) / 2)
    causes = {(row.gpus, row.cpu_cores): tuple(row)[2:6] for row in found["fig13"]}
    assert causes[1, 8] == (0.5, 0, 0, 2.5)
    assert causes[4, 32] == (0, 2, 0, 2.5)
    assert causes[4, 64] == (0, 0, 2.5, 2.5)
    assert [(row.gpu_model, row.across, row.within) for row in found["fig14"]] == [("*", 0, 0)] * 2 + [
        ("H20", 0, 0)
    ] * 2
    assert [tuple(row) for row in found["fig16"]] == [(109, 10, 4.0, 0.25)]
    assert "fig7_left" not in found and "fig12" not in found


def test_types_of_columns_that_parquet_files_may_have(tmp_path: Path) -> None:
    """Whole numbers, large texts and dictionaries; a column without any value has the type null; hours
    without a zero.
    """
    plain = figures_of(one_hour(tmp_path / "plain", PODS, SERVERS, hour=4))
    folder, servers = tmp_path / "typed", [{**row, "gpu_count": int(row["gpu_count"])} for row in SERVERS]
    types = {"pod_id": "large_string", "server_id": "dictionary"}
    types |= dict.fromkeys(("workload_id", "ready_status"), "null")
    asi_tables.write(folder, "pod_hourly", 109, 4, PODS, types)
    types = {"gpu_count": "int32", "cpu_capacity_cores": "float32", "gpu_spec_public": "large_string"}
    asi_tables.write(folder, "server_hourly", 109, 4, servers, types)
    for table in ("pod_hourly", "server_hourly"):
        day = folder / f"asi_opensource_{table}" / "day=109"
        (day / "hour=04").rename(day / "hour=4")
        (folder / "tables").mkdir(exist_ok=True)
        day.parent.rename(folder / "tables" / table)
    found = figures_of(folder)
    assert found == plain and len(found["fig13"]) == 8


def test_pods_on_servers_that_are_not_in_the_inventory(tmp_path: Path) -> None:
    """They count in Figure 16, which is of the pods alone."""
    lost = [pod("lost", "x", 2.0, state_public="Standby"), pod("nowhere", None, 2.0, state_public="Standby")]
    found = figures_of(one_hour(tmp_path, [*PODS, *lost], SERVERS))
    assert [tuple(row) for row in found["fig16"]] == [(109, 10, 6.0, 0.125)]
    assert found["fig9"] == figures_of(one_hour(tmp_path / "without", PODS, SERVERS))["fig9"]


def broken(change: Callable[[Path], Any]) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        one_hour(folder, PODS, SERVERS)
        change(folder)

    return make


def rewrite(table: str, rows: Rows, hour: int = 10, **types: str) -> Callable[[Path], None]:
    return broken(lambda folder: asi_tables.write(folder, table, 109, hour, rows, types))


def part(folder: Path, table: str) -> Path:
    return folder / f"asi_opensource_{table}" / "day=109" / "hour=10" / "part-000.parquet"


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (rewrite("pod_hourly", PODS, gpu_request=""), ["column 'gpu_request' is missing"]),
        (
            rewrite(
                "pod_hourly", [{}], gpu_request="string", used_gpu_hours="bool", server_id="int64"
            ),
            [
                "part-000.parquet: gpu_request: expected a number, found string",
                "part-000.parquet: used_gpu_hours: expected a number, found bool",
                "part-000.parquet: server_id: expected text, found int64",
            ],
        ),
        (
            rewrite("pod_hourly", [{}], ready_status="string"),
            ["ready_status: expected true or false, found string"],
        ),
        (rewrite("pod_hourly", [pod("p", "a", -1.0)]), ["gpu_request: -1; expected 0 to 1e+06"]),
        (
            rewrite("pod_hourly", [pod("p", "a", 1.0, priority_class="high")]),
            ["part-000.parquet: priority_class: 'high'; expected one of HP, LP, Other"],
        ),
        (rewrite("server_hourly", [server("a", 1.5, 8.0)]), ["gpu_count: 1.5; an integer"]),
        (rewrite("server_hourly", [SERVERS[0]] * 2), ["server_id: null or duplicate"]),
        (
            broken(lambda folder: part(folder, "server_hourly").unlink()),
            ["asi_opensource_server_hourly/day=109/hour=10 missing"],
        ),
        (
            broken(lambda folder: part(folder, "pod_hourly").write_bytes(b"PAR1 or not")),
            ["part-000.parquet: cannot be read as Parquet"],
        ),
        (
            rewrite("pod_hourly", PODS, hour=99),
            ["asi_opensource_pod_hourly/day=109/hour=99 0 100000 00 23"],
        ),
        (lambda folder: folder.mkdir(), ["no tables found; asi_opensource_pod_hourly"]),
    ],
)
def test_broken_tables(make: Callable[[Path], None], told: list[str], tmp_path: Path) -> None:
    make(tmp_path / "tables")
    with pytest.raises(gs.InvalidInput) as raised:
        figures_of(tmp_path / "tables")
    assert len(raised.value.problems) == len(told)
    for part in told:
        assert any(str(tmp_path) in text and mentions(text, part) for text in raised.value.problems), part


def test_hours_and_days_that_are_missing(tmp_path: Path) -> None:
    one_hour(tmp_path, PODS, SERVERS)
    with pytest.raises(gs.InvalidInput) as raised:
        gs.io.read_asi_figures(tmp_path, days=(109, 109))
    assert len(raised.value.problems) == 2
    assert mentions(
        raised.value.problems[0],
        "asi_opensource_pod_hourly/day=109/hour=00: is missing, and 22 more of 24 hours",
    )
    with refuses("days: 3 to 4; expected days of which has 109 to 109"):
        gs.io.read_asi_figures(tmp_path, days=(3, 4))
    with refuses("days: 4 to 3; expected the first"):
        gs.io.read_asi_figures(tmp_path, days=(4, 3))
    with refuses("days: 109; expected the first and the last day"):
        gs.io.read_asi_figures(tmp_path, days=109)  # type: ignore[arg-type]
    with pytest.raises(gs.BackendError, match=naming("nothing: is not a folder")):
        figures_of(tmp_path / "nothing")


def test_the_executions_are_read_first(tmp_path: Path) -> None:
    """They are one file; hours take long."""
    one_hour(tmp_path, [pod("p", "a", -1.0)], SERVERS)
    asi_tables.write(
        tmp_path, "job_execution_summary", None, None, [{"gpu_request": 1.0}], {"duration_hours": "string"}
    )
    with refuses("duration_hours: expected a number, found string"):
        figures_of(tmp_path)


def test_running_times_below_zero_do_not_count(tmp_path: Path) -> None:
    one_hour(tmp_path, PODS, SERVERS)
    rows = [
        {"job_type_public": "dev", "model_type_public": "cv", "gpu_request": gpus, "duration_hours": hours}
        for gpus, hours in ((1.0, -0.5), (1.0, 2.0), (1.0, None), (0.0, 3.0), (None, 3.0))
    ]
    asi_tables.write(tmp_path, "job_execution_summary", None, None, rows)
    found = figures_of(tmp_path)
    dev = next(row for row in found["fig7_left"] if row.job_type == "dev")
    assert (dev["count"], dev["mean"]) == (1, 2.0)


@pytest.mark.parametrize("names", ["{}", "tables/asi_opensource_{}"])
def test_places_of_tables(names: str, tmp_path: Path) -> None:
    plain = one_hour(tmp_path / "plain", PODS, SERVERS)
    found = figures_of(plain)
    for table in ("pod_hourly", "server_hourly"):
        target = tmp_path / "other" / names.format(table)
        target.parent.mkdir(parents=True, exist_ok=True)
        (plain / f"asi_opensource_{table}").rename(target)
    assert figures_of(tmp_path / "other") == found


def test_more_gpus_than_a_node_has_are_refused(tmp_path: Path) -> None:
    """Before anything of that size is made."""
    wide = one_hour(tmp_path / "pods", [pod("p", "a", 100.0, state_public="Pending")], SERVERS)
    vast = one_hour(tmp_path / "servers", PODS, [*SERVERS, server("c", 1e6, 8.0)])
    for folder, told in (
        (wide, "gpu_request: 100; expected at most 64"),
        (vast, "gpu_count: 1e+06; expected at most 64"),
    ):
        with refuses(told):
            gs.io.read_asi_hour(folder, 109, 10)
        with refuses(told):
            gs.io.read_asi_trace(folder, days=(109, 109), partial=True)
    parts = one_hour(tmp_path / "parts", PODS, [server("a", 1.5, 8.0)])
    with refuses("gpu_count: 1.5; expected an integer"):
        gs.io.read_asi_hour(parts, 109, 10)


@pytest.mark.parametrize("kind", ["string", "dictionary"])
def test_an_empty_text_is_null(kind: str, tmp_path: Path) -> None:
    texts = ["workload_id", "gpu_spec_public", "state_public", "priority_class"]
    texts += ["job_type_public", "model_type_public"]
    found, clusters = [], []
    for name, nothing in (("null", None), ("empty", "")):
        empty = dict.fromkeys(texts, nothing)
        folder = tmp_path / name
        pods = [*PODS, pod("x", nothing, 1.0), {**pod("y", "a", 1.0), **empty}]
        asi_tables.write(folder, "pod_hourly", 109, 10, pods, dict.fromkeys(texts, kind))
        rows = [*SERVERS, server("c", 8.0, 64.0, cluster_id=nothing, asw_id=nothing, gpu_spec_public=nothing)]
        asi_tables.write(folder, "server_hourly", 109, 10, rows, {"gpu_spec_public": kind})
        found.append(figures_of(folder))
        clusters.append(gs.io.read_asi_hour(folder, 109, 10).cluster)
    assert found[0] == found[1] and clusters[0] == clusters[1]


def test_a_switch_is_kept_if_its_cluster_is_unknown(tmp_path: Path) -> None:
    servers = [
        server("a", 8.0, 64.0),
        server("b", 8.0, 64.0, cluster_id=None),
        server("d", 8.0, 64.0, cluster_id=None, asw_id="t"),
        server("e", 8.0, 64.0, cluster_id=None, asw_id=None),
    ]
    reading = gs.io.read_asi_hour(one_hour(tmp_path, PODS[:1], servers), 109, 10)
    networks = {node.name: list(node.network) for node in reading.cluster.nodes}
    known, alone = ["c", "c/s"], ["cluster of t", "cluster of t/t"]
    assert networks == {"a": known, "b": known, "d": alone, "e": []}
    rows = {row.what: row for row in reading.report.rows if row.kind == "Server"}
    assert rows["cluster"].examples == ["b", "d"] and rows["access switch"].examples == ["e"]


def test_a_snapshot(tmp_path: Path) -> None:
    more = [
        pod("ended", "a", 1.0, state_public="Succeeded"),
        pod("waits", None, 2.0, state_public="Pending", used_gpu_hours=None),
        pod("lost", None, 1.0),
        pod("asleep", "b", 0.0, state_public="Standby", priority_class=None),
        pod("late", "a", 8.0, used_gpu_hours=1.0),
        pod("wide", "b", 1.5, priority_class="LP", used_gpu_hours=0.0),
    ]
    unknown = server("c", 4.0, None, asw_id=None)
    more.append(pod("on c", "c", 1.0, cpu_request_cores=7.5))
    reading = gs.io.read_asi_hour(one_hour(tmp_path, [*PODS, *more], [*SERVERS, unknown]), 109, 10)
    cluster = reading.cluster
    assert [(n.name, n.gpu_count, n.cpu_milli, n.network) for n in cluster.nodes] == [
        ("a", 8, 192_000, ["c", "c/s"]),
        ("b", 16, 384_000, ["c", "c/s"]),
        ("c", 4, 7500, ["c"]),
    ]
    tasks = {task.name: task for task in cluster.tasks}
    assert set(tasks) == {*(p["pod_id"] for p in PODS), "waits", "on c", "asleep"}
    assert (tasks["waits"].node, tasks["waits"].gpu_count) == (None, 2)
    assert tasks["standby"].standby and set(tasks["spot"].gpus) < set(tasks["standby"].gpus)
    assert (tasks["part"].gpu_count, tasks["part"].gpu_share_milli) == (1, 500)
    assert (tasks["bare"].gpu_count, tasks["bare"].priority_class) == (0, "HP")
    assert tasks["other"].priority_class == "other"
    assert tasks["active"].priority > tasks["other"].priority > tasks["spot"].priority
    assert cluster.to_json()["now"] == 3600 * (24 * 109 + 10)
    rows = {(row.what, row.fidelity): row for row in reading.report.rows}
    assert rows["end", "left_out"].examples == ["ended"] and rows["server", "left_out"].examples == ["lost"]
    assert rows["room", "left_out"].examples == ["late", "wide"]
    assert not tasks["asleep"].standby and rows["Standby, not HP", "approximated"].examples == ["asleep"]
    assert rows["cores", "approximated"].examples == ["c"] == rows["access switch", "approximated"].examples
    assert rows["memory", "ignored"].count == len(tasks) and "not in the tables" in str(reading)
    with refuses("asi_opensource_pod_hourly/day=109/hour=11 missing"):
        gs.io.read_asi_hour(tmp_path, 109, 11)
    with refuses("hour 24 0 23"):
        gs.io.read_asi_hour(tmp_path, 109, 24)


def test_figures_of_the_snapshot_are_those_of_the_hour(tmp_path: Path) -> None:
    """If every pod held its GPUs for the whole hour, and only HP and LP pods run."""
    pods = [p for p in PODS if p["pod_id"] != "other"]
    found = figures_of(one_hour(tmp_path, pods, SERVERS))
    cluster = gs.io.read_asi_hour(tmp_path, 109, 10).cluster
    report = gs.fragmentation.report(cluster, "asi", max_gpus_per_node=8, accounting="hp")
    assert [tuple(row)[:6] for row in report] == [tuple(row)[:6] for row in found["fig13"]]
    ratios = gs.fragmentation.server_ratios(cluster)[-1]
    assert (100 * ratios.hp, 100 * ratios.hp_and_lp) == pytest.approx(tuple(found["fig9"][0])[1:])
    assert ratios.standby_used == found["fig16"][0].standby_used


def test_snapshots_of_generated_tables_hold_all_that_ran(tmp_path: Path) -> None:
    gs.sim.generate_asi_tables(tmp_path, servers=80, seed=3)
    for hour in (2, 12):
        rows = [row for _, at, row in asi_tables.read(tmp_path, "pod_hourly") if at == hour]
        reading = gs.io.read_asi_hour(tmp_path, 109, hour)
        of_pods = [row for row in reading.report.rows if row.kind == "Pod"]
        left_out = sum(row.count for row in of_pods if row.fidelity == "left_out")
        assert left_out + len(reading.cluster.tasks) == len(rows) and left_out < 0.15 * len(rows)
        placed = [row for row in rows if row["server_id"] is not None]
        lent = sum((r["state_public"], r["priority_class"]) == ("Standby", "HP") for r in placed)
        assert sum(task.standby for task in reading.cluster.tasks) == lent
        assert len(gs.consolidate(reading.cluster).moves) > 0


def test_a_trace(tmp_path: Path) -> None:
    training = {"workload_id": "w", "job_type_public": "training", "gpu_spec_public": "H20"}
    hours = [
        [pod("old", "a", 2.0, schedule_delay_sec=50), pod("bare", "a", 0.0)],
        [
            pod("old", "a", 2.0),
            pod("g1", "a", 1.0, used_gpu_hours=0.25, schedule_delay_sec=100, **training),
            pod("g2", "b", 1.0, used_gpu_hours=0.5, **training),
            pod("spot", "b", 0.5, priority_class="LP", used_gpu_hours=0.5),
            pod("other", "b", 1.0, priority_class="Other"),
            pod("never", "b", 1.0, used_gpu_hours=None),
        ],
        [
            pod("g1", "a", 1.0, **training),
            pod("g2", "b", 1.0, used_gpu_hours=0.5, state_public="Succeeded", **training),
        ],
    ]
    for hour, pods in enumerate(hours):
        one_hour(tmp_path, pods, SERVERS, hour=hour)
    trace = gs.io.read_asi_trace(tmp_path, days=(109, 109), partial=True, checkpoint_interval=600)
    assert trace.node_count == 2
    node = {"gpu_model": "H20", "memory_mib": 0, "network": ["c", "c/s"]}
    a = {"name": "a", "gpu_count": 8, "cpu_milli": 192_000, **node}
    b = {"name": "b", "gpu_count": 16, "cpu_milli": 384_000, **node}
    part = {"gpu_share_milli": 500, "checkpoint_interval": 600}
    gang = {"gpu_models": ["H20"], "pods": 2}
    by_hand = gs.sim.SpotTrace(
        [a, b],
        [
            asked("old", 2, "HP", arrival_s=0, work_s=7200),
            asked("spot", 1, "LP", arrival_s=3600, work_s=3600, **part),
            asked("g1", 1, "HP", arrival_s=5400, work_s=4500, **gang),
        ],
    )
    assert trace == by_hand
    result = gs.sim.replay_spot(trace)
    assert (result.hp_unfinished, result.lp_unfinished) == (0, 0)


def asked(name: str, gpus: int, kind: str, **more: Any) -> dict[str, Any]:
    order = {"priority": {"HP": 1000, "LP": 200}[kind], "priority_class": kind}
    return {"name": name, "gpu_count": gpus, "cpu_milli": 0, "memory_mib": 0, **order, **more}


def test_the_console(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    tables, out = tmp_path / "tables", tmp_path / "out"
    gs.sim.generate_asi_tables(tables, servers=60, seed=1)
    assert cli.main(["asi-figures", str(tables), "-o", str(out), "--days", "109", "--plots"]) == 0
    found = gs.io.read_asi_figures(tables, days=(109, 109))
    assert {path.stem for path in out.glob("*.csv")} == set(found)
    assert (out / "fig13.csv").read_text() == found["fig13"].to_csv()
    assert {path.stem for path in out.glob("*.png")} == {name for name in found if name.startswith("fig")}
    capsys.readouterr()
    snapshot = tmp_path / "cluster.json"
    assert cli.main(["import", "asi", str(tables), "--day", "109", "--hour", "3", "-o", str(snapshot)]) == 0
    assert "ended within the hour" in capsys.readouterr().out
    assert gs.Cluster.from_json(snapshot) == gs.io.read_asi_hour(tables, 109, 3).cluster
    for words, told in (
        (["import", "asi", str(tables), "-o", str(snapshot), "--day", "1"], "--hour: missing; import asi"),
        (
            ["import", "asi", "a", "b", "-o", str(snapshot), "--day", "1", "--hour", "1"],
            "2 folders; expected one",
        ),
        (
            ["import", "slurm", str(snapshot), "-o", str(out / "c.json"), "--day", "1"],
            "--day: not an option of import slurm",
        ),
        (
            ["asi-figures", str(tables), "-o", str(tables)],
            "--output: expected a folder other than the folder of the tables",
        ),
        (["asi-figures", str(tables), "-o", str(out), "--days", "4-3"], "--days: 4 to 3; expected the first"),
    ):
        assert cli.main(words) == 2
        assert mentions(capsys.readouterr().err, told)


def test_figures_without_rows_are_not_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    found = figures_of(one_hour(tmp_path, PODS, SERVERS, hour=3))
    with refuses("name: fig14; this table has no rows"):
        gs.plotting.plot_asi_figure(found, "fig14")
    with refuses("name: 'table1'; expected one of fig2,"):
        gs.plotting.plot_asi_figure(found, "table1")


def test_progress_is_reported_by_hours(tmp_path: Path) -> None:
    for hour in (1, 2):
        one_hour(tmp_path, PODS, SERVERS, hour=hour)
    told: list[tuple[str, int, int]] = []
    gs.io.read_asi_figures(tmp_path, days=(109, 109), partial=True, progress=lambda *at: told.append(at))
    assert told == [("hours", 0, 2), ("hours", 1, 2), ("hours", 2, 2)]


def test_numbers_that_no_real_holds_are_refused(tmp_path: Path) -> None:
    large = [pod("p", "a", 1.0, used_gpu_hours=2**60)]
    asi_tables.write(tmp_path, "pod_hourly", 109, 10, large, {"used_gpu_hours": "int64"})
    asi_tables.write(tmp_path, "server_hourly", 109, 10, [server("a", 8.0, 64.0)])
    with pytest.raises(gs.InvalidInput, match="used_gpu_hours: 1.15292e"):
        gs.io.read_asi_figures(tmp_path, days=(109, 109), partial=True)


def test_a_server_keeps_the_cores_of_an_earlier_hour(tmp_path: Path) -> None:
    for hour, cores in ((9, 192.0), (10, None)):
        asi_tables.write(tmp_path, "pod_hourly", 109, hour, [pod("p", "a", 1.0, cpu_request_cores=8.0)])
        asi_tables.write(
            tmp_path, "server_hourly", 109, hour, [server("a", 8.0, cores), server("b", 8.0, None)]
        )
    trace = gs.io.read_asi_trace(tmp_path, days=(109, 109), partial=True)
    assert gs.sim.replay_spot(trace).hp_unfinished == 0
