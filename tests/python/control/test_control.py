# SPDX-License-Identifier: Apache-2.0
"""gpusched.control, the simulated host, and the commands `control`, `simulate-host` and `replay-audit`."""

from __future__ import annotations

import copy
import io
import json
import pickle
import re
import sys
from pathlib import Path
from typing import Any

import gpusched as gs
import numpy as np
import pytest
from control_documents import config, window
from gpusched import cli
from messages import mentions, naming, refuses
from schemas import validator


def test_layouts_are_values() -> None:
    empty = gs.control.mig_layout("A100-40GB")
    one = empty.create("2g", 0).create("1g", 2)
    assert empty.instances == [] and one.instances == [("2g", 0), ("1g", 2)]
    assert one == gs.control.mig_layout("A100-40GB", [("1g", 2), ("2g", 0)])
    assert one == copy.copy(one) == copy.deepcopy(one) == pickle.loads(pickle.dumps(one))
    assert one != empty and repr(one) == "mig_layout('A100-40GB', [('2g', 0), ('1g', 2)])"
    assert one.destroy("1g", 2).instances == [("2g", 0)]
    assert one.least_fragmenting("3g") == 4 and one.least_fragmenting("7g") is None
    assert one.enlargements("2g", 0) == [("3g", 4)]
    alone = gs.control.mig_layout("A100-40GB", [("2g", 0)]).enlargements("2g", 0, largest_first=True)
    assert [key for key, _ in alone] == ["7g", "4g", "3g", "3g"]
    assert one.largest_free_block == 5
    assert one.profiles[0].key == "1g" and one.profiles[0].starts == [0, 1, 2, 3, 4, 5, 6]
    target = empty.create("3g", 4).create("1g", 2)
    here = one
    for kind, profile, start in one.transition_to(target):
        here = here.create(profile, start) if kind == "create" else here.destroy(profile, start)
    assert here == target
    for bad in (
        lambda: one.create("9g", 0),
        lambda: one.destroy("3g", 4),
        lambda: one.transition_to(gs.control.mig_layout("A30-24GB")),
        lambda: gs.control.mig_layout("X"),
    ):
        with pytest.raises(gs.InvalidInput):
            bad()


def test_a_controller_decides_and_its_log_replays() -> None:
    controller = gs.control.Controller(config())
    actions = [a for _ in range(10) for a in controller.step(window(25.0, 15e9))]
    assert actions[0].kind == "throttle_io" and actions[0].target == "T2"
    assert mentions(str(actions[0]), "T1: limit block I/O of T2 to 500 MB/s for 30 s")
    assert actions[0] == pickle.loads(pickle.dumps(actions[0]))
    assert controller.state["T1"]["phase"] == "guarded"
    assert controller.admission_open
    replay = gs.control.replay_audit(controller.audit_log, config())
    assert (replay.windows, replay.actions, replay.first_difference) == (10, 1, -1)
    other = gs.control.replay_audit(controller.audit_log, config(options={"persistence": 4}))
    assert other.first_difference == 0 and other.expected != other.found
    again = gs.control.Controller(controller.config)
    assert again.config == controller.config
    assert len(controller.take_log().splitlines()) == 10 and controller.audit_log == ""


def test_parameters_are_those_of_the_papers_table_1() -> None:
    found = gs.control.Controller(mig=gs.control.mig_layout("A100-40GB", [("2g", 0)])).config
    options, tenant = found["options"], found["host"]["tenants"][0]
    table = {"persistence": 3, "dwell": 256, "cool_down": 128}
    assert tenant["tau_ms"] == 15 and table.items() <= options.items()
    levels = {"quota_levels": (50, 100), "io_levels_mb_s": (100, 500)}
    for name, (least, most) in levels.items():
        assert least <= min(options[name]) and max(options[name]) <= most
        gs.control.Controller(config(options={name: [most, least]}))
        for value in (least - 1, most + 1):
            with refuses(f"{name} from {least} to {most}"):
                gs.control.Controller(config(options={name: [value]}))


def test_events_give_their_reason() -> None:
    controller = gs.control.Controller(config())
    events = []
    for _ in range(4):
        controller.step(window(25.0, 15e9))
        events += controller.events
    assert [(e.row, e.before, e.after) for e in events] == [
        ("tail_high", "observe", "suspect"),
        ("throttle", "suspect", "guarded"),
    ]
    assert events[-1].cause == "pcie" and "block I/O limited" in str(events[-1])


@pytest.mark.parametrize(("first", "pinned"), [(8000, ["T1: pin to cores 1-7"]), (1000, [])])
def test_a_tenant_is_pinned_away_from_interrupts_if_they_differ(first: float, pinned: list[str]) -> None:
    machine = config()["host"] | {"core_numa": [0] * 8}
    seen = window(25.0) | {"irq_per_s": [first] + [1000] * 7}
    controller = gs.control.Controller(config(host=machine, flags={"place": False, "mig": False}))
    assert [str(action) for _ in range(5) for action in controller.step(seen)] == pinned


def test_a_layout_instead_of_a_host() -> None:
    layout = gs.control.mig_layout("A100-80GB", [("2g", 2)])
    controller = gs.control.Controller({"options": {"dwell": 64}}, mig=layout)
    assert controller.state["T1"]["profile"] == "2g" and controller.state["T1"]["slice"] == 2
    assert controller.config["host"]["gpus"][0]["device"] == "A100-80GB"
    assert controller.step({"tenants": {"T1": {"p99_ms": 3, "count": 100}}}) == []
    assert gs.control.Controller(mig=gs.control.mig_layout("A30-24GB")).state["T1"]["profile"] == "1g"
    with refuses("mig `options` has a host"):
        gs.control.Controller(config(), mig=layout)


@pytest.mark.parametrize(
    ("observation", "message"),
    [
        ({"tenants": {"T1": {"p99_ms": "x"}}}, "/tenants/T1/p99_ms"),
        ({"tenants": {"T1": {"p99_ms": float("nan")}}}, "finite"),
        ("nonsense", "signals:"),
    ],
)
def test_bad_observations(observation: Any, message: str) -> None:
    controller = gs.control.Controller(config())
    with pytest.raises(gs.InvalidInput, match=message):
        controller.step(observation)
    assert controller.audit_log == ""


def test_the_simulated_host() -> None:
    static = gs.sim.simulate_host(variant="static", seeds=range(2), duration_s=900)
    full = gs.sim.simulate_host(variant="full", seeds=range(2), duration_s=900)
    assert len(static) == 2 and np.all(static.throughput == 1) and np.all(static.structural_actions == 0)
    assert np.all(full.miss_rate <= static.miss_rate) and np.all(full.p99_ms <= static.p99_ms)
    assert np.all(static.arrived == full.arrived)
    assert full.miss_rate.shape == (2,) and not full.miss_rate.flags.writeable
    again = gs.sim.simulate_host(variant="full", seeds=[1], duration_s=900)
    assert again.p99_ms[0] == full.p99_ms[1]
    changed = {"classes": [(1.0, 4e6, 6.0)], "mmpp_rates": (20, 30)}
    changed |= {"pause_mode": "shed", "dwell": 64}
    rows = gs.sim.simulate_host(seeds=[0], duration_s=200, overrides=changed)
    assert rows.arrived[0] < full.arrived[0]


def test_variants_compare_with_their_spread(capsys: pytest.CaptureFixture[str]) -> None:
    table = gs.sim.compare_hosts(["static", "full"], seeds=range(3), duration_s=900)
    run = gs.sim.simulate_host(variant="full", seeds=range(3), duration_s=900)
    static, full = table
    assert (static.variant, full.variant, full.target_ms) == ("static", "full", "15")
    for name, x in (
        ("miss_pct", 100 * run.miss_rate),
        ("p99_ms", run.p99_ms),
        ("above_pct", run.violation_s / 9),
        ("served_pct", 100 * run.throughput),
        ("work_pct", 100 * run.system_throughput),
        ("guards_per_h", 4.0 * (run.throttles + run.quota_changes)),
    ):
        assert full[name] == pytest.approx(x.mean()) and full[f"{name}_low"] == pytest.approx(x.min())
        assert full[f"{name}_high"] == pytest.approx(x.max())
    assert static.served_pct == static.work_pct == 100 and static.changes_per_h == 0
    one = {"seeds": [0], "duration_s": 60}
    strict = {"tau_ms": 12.0, "threshold_ms": 10.0}
    assert gs.sim.compare_hosts(["static"], overrides=strict, **one)[0].target_ms == "12"
    assert gs.sim.compare_hosts(["static"], scenario="two_services", **one)[0].target_ms == "15/15"
    with pytest.raises(gs.InvalidInput, match="seeds: none"):
        gs.sim.compare_hosts(["static"], seeds=[])

    command = ["simulate-host", "--variants", "static", "full", "--seeds", "3", "--duration-s", "900"]
    assert cli.main(command) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["figure", "static", "full"]
    told = {line.split()[0]: line for line in lines[2:-1]}
    assert list(told) == list(gs.sim.HOST_COLUMNS)[1:]
    assert lines[-1].startswith("means of 3 seeds and, in brackets, the lowest and the highest of them; ")
    assert f"{full.p99_ms:.1f} [{full.p99_ms_low:.1f}, {full.p99_ms_high:.1f}]" in told["p99_ms"]


def test_settings_of_the_controller_are_overridden() -> None:
    """E3: each reaches the controller, and the threshold leaves the target of the requests as it is."""
    _, plain = gs.sim.record_host(duration_s=2)
    plain = plain["options"]  # as docs/control-simulation.md says
    assert plain["quota_levels"] == [50] and plain["io_levels_mb_s"] == [500]
    changed = {"persistence": 5, "window_s": 1.0, "dwell": 64}
    changed |= {"quota_levels": [90, 60], "io_levels_mb_s": [400, 100]}
    _, config = gs.sim.record_host(duration_s=2, overrides={**changed, "threshold_ms": 12.5})
    assert {name: config["options"][name] for name in changed} == changed
    assert config["host"]["tenants"][0]["tau_ms"] == 12.5
    with refuses("overrides: /threshold_ms: above 0, at most 1e+06, found 0"):
        gs.sim.simulate_host(seeds=[0], duration_s=60, overrides={"threshold_ms": 0.0})


def test_the_sensitivity_study_changes_one_setting_at_a_time(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["simulate-host", "--sensitivity", "--variants", "full", "--seeds", "2", "--duration-s", "200"]
    assert cli.main(command) == 0
    lines = capsys.readouterr().out.splitlines()
    header, rows = lines[0].split(), [line for line in lines if line.startswith("full")]
    assert header[:4] == ["variant", "setting", "value", "miss_pct"]
    assert "as it is" in rows[0] and len(rows) == 1 + 4 + 4 + 2 + 3 + 3 + 3
    for name, value in (("persistence", 10), ("threshold_ms", 18)):
        one = gs.sim.simulate_host(variant="full", seeds=range(2), duration_s=200, overrides={name: value})
        row = next(line.split() for line in rows if line.split()[1:3] == [name, str(value)])
        assert float(row[3]) == pytest.approx(float(np.mean(100 * one.miss_rate)), abs=0.01)
        assert float(row[4]) == pytest.approx(float(np.mean(one.p99_ms)), abs=0.01)
    assert cli.main([*command, "--audit", "log.jsonl"]) == 2
    assert "--sensitivity:" in capsys.readouterr().err


def test_variants_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    full = gs.control.variant_flags("full")
    paper = {"join_guards": True, "own_gpu_first": True}
    for name, changed in (
        ("paper", paper),
        ("paper_largest", {**paper, "largest_first": True}),
        ("no_guards", {"guard_io": False, "guard_mps": False}),
        ("no_placement", {"place": False}),
        ("no_mig", {"mig": False}),
    ):
        assert gs.control.variant_flags(name) == {**full, **changed}
    # Type checkers and the console know every variant of the library.
    known = next(k for k in gs._core.keywords["sim.simulate_host"] if k["name"] == "variant")
    assert known["type"] == str(gs.sim.HostVariant).removeprefix("typing.")
    command = ["simulate-host", "--variants", "paper", "no_mig", "--seeds", "1", "--duration-s", "300"]
    assert cli.main(command) == 0
    assert capsys.readouterr().out.splitlines()[0].split() == ["figure", "paper", "no_mig"]


def test_ours_and_llm_mode() -> None:
    log, options = gs.sim.record_host(3, variant="ours", duration_s=900)
    assert gs.control.replay_audit(log, options).first_difference == -1
    trace = [(float(k), 100, 10) for k in range(50)]
    run = gs.sim.simulate_host(
        variant="static", seeds=[0], duration_s=60, scenario="llm", overrides={"llm_requests": trace}
    )
    assert abs(run.arrived[0] - 20 * 60) <= 1  # from the first moment to the last
    assert 0 < run.decoded[0] <= run.completed[0]


def test_recorded_requests_of_files_and_texts(tmp_path: Path) -> None:
    azure = "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-01-01 00:00:00,9,8\n"
    file = tmp_path / "azure.csv"
    file.write_text(azure)
    for source in (file, str(file), azure):
        assert gs.sim.read_llm_trace(source) == [(0.0, 9, 8)]
    with pytest.raises(gs.BackendError, match="no.csv"):
        gs.sim.read_llm_trace(tmp_path / "no.csv")
    with pytest.raises(TypeError, match=naming("csv: None; expected the path of a file")):
        gs.sim.read_llm_trace(None)  # type: ignore[arg-type]
    burst = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    burst += "5,ChatGPT,472,18,490,Conversation log\n118,GPT-4,417,0,417,API log\n"
    with pytest.warns(RuntimeWarning, match="1 request without response tokens"):
        assert gs.sim.read_llm_trace(burst) == [(0.0, 472, 18)]


@pytest.mark.parametrize(
    "options",
    [
        {"overrides": {"llm_requests": [(0, 1)]}},
        {"overrides": {"x": 1}},
        {"overrides": [1]},
        {"variant": "x"},
        {"duration_s": 0},
        {"seeds": [-1]},
    ],
)
def test_bad_simulations(options: dict[str, Any]) -> None:
    with pytest.raises(gs.InvalidInput):
        gs.sim.simulate_host(**options)


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, file, dry = (str(tmp_path / name) for name in ("log.jsonl", "config.json", "dry.jsonl"))
    simulate = ["simulate-host", "--variants", "static", "full", "--seeds", "1", "--duration-s", "900"]
    assert cli.main([*simulate, "--audit", log, "--config-output", file]) == 0
    assert "means of 1 seed;" in capsys.readouterr().out
    assert cli.main(["replay-audit", log, "--config", file]) == 0
    assert "450 windows" in capsys.readouterr().out

    # Signals of a host without a controller.
    signals = str(tmp_path / "static.jsonl")
    Path(signals).write_text(gs.sim.record_host(0, variant="static", duration_s=900)[0])
    assert cli.main(["control", "--config", file, "--signals", signals, "--dry-run", "--audit", dry]) == 0
    out = capsys.readouterr().out
    assert mentions(out, "would act: T1: enlarge from GPU 0 2g at 0 to GPU 0 3g at 4, cores 0-3")
    assert mentions(out, "suspect -> cooldown (row 12, cause unknown): dry run: would reconfigure")
    assert "none carried out" in out
    assert cli.main(["replay-audit", dry, "--config", file, "--dry-run"]) == 0
    assert cli.main(["replay-audit", dry, "--config", file]) == 1
    assert "line 1 differs" in capsys.readouterr().out

    changed = Path(log).read_text().replace('"done":1', '"done":0', 1)
    Path(log).write_text(changed)
    assert cli.main(["replay-audit", log, "--config", file]) == 1


def summary_of(
    config: dict[str, Any], lines: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> list[str]:
    file, signals = tmp_path / "host.json", tmp_path / "signals.jsonl"
    file.write_text(json.dumps(config))
    signals.write_text("".join(line.rstrip("\n") + "\n" for line in lines))
    assert cli.main(["control", "--config", str(file), "--signals", str(signals), "--dry-run"]) == 0
    out = capsys.readouterr().out.splitlines()
    return out[next(k for k, line in enumerate(out) if ", target " in line) :]


def numbers(line: str) -> list[float]:
    return [float(x) for x in re.findall(r"-?[0-9]+(?:\.[0-9]+)?", line.replace(",", ""))]


def test_a_dry_run_ends_with_a_summary_to_judge_by(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Time above the target as recorded and by estimate, actions by kind, cost."""
    options = {"duration_s": 1800, "overrides": {"serial_fraction": 0.65}}
    log, _ = gs.sim.record_host(0, variant="static", **options)
    _, full = gs.sim.record_host(0, variant="full", **options)
    head, above, mean, wished, cost, last = summary_of(full, log.splitlines(), tmp_path, capsys)
    tenants = [json.loads(line)["observation"]["tenants"] for line in log.splitlines()]
    p99 = np.array([of[0][3] for of in tenants], dtype=float)
    p99 = p99[np.isfinite(p99)]
    assert head.startswith(f"T1, target 15 ms: {len(p99)} windows")
    before, after = numbers(above)
    assert before == pytest.approx(100 * np.mean(p99 > 15), abs=0.06) and after <= before
    recorded, estimated = numbers(mean.split(":")[1])
    assert recorded == pytest.approx(p99.mean(), abs=0.01) and estimated < recorded - 0.3
    assert "change of instance" in wished or "changes of instance" in wished
    assert "0 pauses" in cost and last.endswith("none carried out")
    # What really happens when it acts is on the same side.
    static, acted = (gs.sim.simulate_host(variant=v, seeds=[0], **options) for v in ("static", "full"))
    assert acted.violation_s[0] < static.violation_s[0]

    # A configuration with every lever off, such as that of the variant static, wishes nothing and says why.
    _, off = gs.sim.record_host(0, variant="static", **options)
    assert mentions(
        summary_of(off, log.splitlines(), tmp_path, capsys)[3],
        "requested actions: none, guard_io, guard_mps, place, mig, pin",
    )

    # Nothing wished: nothing changes, and nothing costs.
    quiet = [json.dumps({**window(8), "window": k, "time_s": 2.0 * k}) for k in range(50)]
    head, above, _, wished, cost, _ = summary_of(config(), quiet, tmp_path, capsys)
    assert numbers(above) == [0, 0] and wished.endswith("requested actions: none")
    assert mentions(cost, "0 pauses, 0 s about 0 requests lost; block I/O limited for 0 s")
    # Windows without a p99 are counted, and a recording of nothing else has no figures.
    unknown = [json.dumps({"window": k, "time_s": 2.0 * k}) for k in range(20)]
    assert summary_of(config(), unknown, tmp_path, capsys)[0] == "T1, target 15 ms: no window with a p99"
    quiet += [json.dumps({"window": k, "time_s": 2.0 * k}) for k in range(50, 70)]
    assert mentions(summary_of(config(), quiet, tmp_path, capsys)[0], "20 windows without a p99")


def test_commands_report_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, signals = tmp_path / "config.json", tmp_path / "signals.jsonl"
    run = ["control", "--config", str(file), "--signals", str(signals), "--dry-run"]
    assert cli.main(run) == 2 and f"{file}: cannot be opened" in capsys.readouterr().err
    file.write_text("nonsense")
    assert cli.main(run) == 2 and "not a JSON document" in capsys.readouterr().err
    file.write_text(json.dumps(config(options={"dwel": 1})))
    assert cli.main(run) == 2 and "/options/dwel: unknown field" in capsys.readouterr().err
    file.write_text(json.dumps(config()))
    assert cli.main(run) == 2 and f"{signals}: cannot be read" in capsys.readouterr().err
    signals.write_text(json.dumps(window(20)) + "\n{}x\n")
    assert cli.main(run) == 2 and "line 2" in capsys.readouterr().err
    signals.write_bytes(b'{"window": 9223372036854775807}\n{}\n{"x": "\xff"}\n')
    assert cli.main(run) == 2 and mentions(
        capsys.readouterr().err, "line 3: signals:1:9: not a JSON document"
    )
    assert cli.main(run[:-1]) == 2 and "--dry-run" in capsys.readouterr().err


def test_names_that_the_terminal_cannot_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, signals = tmp_path / "config.json", tmp_path / "signals.jsonl"
    file.write_text(json.dumps(config()).replace("T1", "\u00dc1"), encoding="utf-8")
    signals.write_text(json.dumps(window(20)).replace("T1", "\u00dc1"), encoding="utf-8")
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="ascii"))
    assert cli.main(["control", "--config", str(file), "--signals", str(signals), "--dry-run"]) == 0
    assert b"\\xdc1: suspect" in out.getvalue()


def test_timeline(tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from gpusched import plotting

    log, options = gs.sim.record_host(0, duration_s=2400)
    ax = plotting.plot_control(log, options)
    labels = ax.get_legend_handles_labels()[1]
    assert "instance changed" in labels
    assert len(ax.lines[0].get_xdata()) == len(log.splitlines())
    stays = [text.get_text() for text in ax.texts if text.get_text().startswith("GPU")]
    assert stays[0] == "GPU 0 2g@0" and len(stays) == len(ax.patches) >= 2
    ax.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.texts if text.get_text() != "target"]
    assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])
    left, bottom = ax.transData.transform((ax.get_xlim()[0], ax.get_ylim()[0]))
    assert all(box.x0 >= left - 1 and box.y0 >= bottom - 1 for box in boxes)  # inside the axes
    heights = {
        line.get_label(): set(line.get_ydata()) for line in ax.lines if not line.get_label().startswith("_")
    }
    assert all(len(at) == 1 for at in heights.values()) and len(set.union(*heights.values())) == len(heights)
    assert plotting.plot_control(log, options, "T1", ax) is ax
    for bad in (
        lambda: plotting.plot_control(log, options, "T2"),
        lambda: plotting.plot_control("", options),
    ):
        with pytest.raises(gs.InvalidInput):
            bad()
    command = "simulate-host --variants full --seeds 1 --duration-s 600 --plot".split()
    assert cli.main([*command, str(tmp_path / "t.png")]) == 0
    assert (tmp_path / "t.png").stat().st_size > 1000
    matplotlib.pyplot.close("all")


def test_the_schema_agrees_with_the_reader() -> None:
    reader = validator("control.v1")
    schema = reader.schema

    def accepted(document: dict[str, Any]) -> bool:
        try:
            gs.control.Controller(document)
        except gs.InvalidInput:
            return False
        return True

    complete = gs.control.Controller(config()).config
    reader.validate(complete)
    # Defaults and fields are the library's.
    for part, where in (("flags", "flags"), ("options", "options")):
        fields = schema["$defs"][where]["properties"]
        assert set(fields) == set(complete[part])
        for name, field in fields.items():
            assert field["default"] == complete[part][name], name
    assert set(schema["$defs"]["host"]["properties"]["gpus"]["items"]["properties"]["device"]["enum"]) == set(
        gs.control.mig_devices()
    )
    # Every number just inside and just outside its range.
    for name, field in schema["$defs"]["options"]["properties"].items():
        rule = {**schema["$defs"].get(field.get("$ref", "").removeprefix("#/$defs/"), {}), **field}
        tries: list[Any] = ["x", None, [["x"]]]
        for bound in ("minimum", "maximum", "exclusiveMinimum"):
            if bound in rule:
                tries += [rule[bound], rule[bound] - 1, rule[bound] + 1]
        for value in tries:
            if name.endswith(("_high", "_low")) and isinstance(value, (int, float)) and value > 0:
                continue  # the schema does not see that low is below high
            # The schema does not see that a lease is no shorter than a window.
            beside = {"window_s": {"lease_s": 300}, "lease_s": {"window_s": 0.1}}.get(name, {})
            document = config(options={name: value, **beside})
            assert reader.is_valid(document) == accepted(document), (name, value)
    for change in (
        {"surprise": 1},
        {"version": 2},
        {"host": {}},
        {"host": {**complete["host"], "gpus": []}},
        {"host": {**complete["host"], "tenants": [{"name": "a", "protected": True}]}},
        {"host": {**complete["host"], "tenants": [{"name": ""}]}},
    ):
        document = {**config(), **change}
        assert not reader.is_valid(document) and not accepted(document), change


def test_layout_counts_are_the_golden_ones() -> None:
    five = ["1g", "2g", "3g", "4g", "7g"]
    a100, a30 = gs.control.mig_layout("A100-80GB"), gs.control.mig_layout("A30-24GB")
    assert a100.count_layouts(profiles=five) == len(a100.all_layouts(profiles=five)) == 298
    assert a100.count_layouts(profiles=five, maximal=True) == 19
    assert a100.count_layouts(profiles=five, multisets=True) == 38
    assert (a100.count_layouts(), a30.count_layouts(maximal=True)) == (2319, 17)
    assert "A30-24GB" in gs.control.mig_devices()


def test_queueing_formulas() -> None:
    assert gs.sim.kingman_wait(0.5, 1, 1, 10) == 10
    assert gs.sim.is_stable([1e9, 5e9], [float("inf"), 1e9], 3e9, 1, 2)
    assert not gs.sim.is_stable([1e9, 5e9], [float("inf"), 5e9], 3e9, 1, 2)
    with pytest.raises(gs.InvalidInput):
        gs.sim.kingman_wait(2, 1, 1, 1)


@pytest.mark.parametrize("command", [
    ["control", "--dry-run", "--signals", "LOG"], ["control"], ["control", "status"], ["replay-audit", "LOG"],
])  # fmt: skip
@pytest.mark.parametrize(
    ("change", "place"), [({"host": [0]}, "/host"), ({"live": {"layout_every": 0}}, "/live")]
)
def test_the_file_with_the_mistake_is_named(
    command: list[str], change: dict[str, Any], place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, file = tmp_path / "log.jsonl", tmp_path / "config.json"
    text, recorded = gs.sim.record_host(0, duration_s=20)
    log.write_text(text)
    file.write_text(json.dumps(recorded | change))
    arguments = [str(log) if word == "LOG" else word for word in command]
    code = cli.main([*arguments, "--config", str(file)])
    errors = capsys.readouterr().err
    if place == "/live" and "LOG" in command:
        assert code == 0 and errors == ""  # only a host reads it
    else:
        assert code == 2 and errors.startswith(f"gpusched: {file}: {place}"), errors
