# SPDX-License-Identifier: Apache-2.0
"""Prefill and decode replicas over a day: arrivals, sizes, policies, the simulation."""

import copy
import json
import pickle

import gpusched as gs
import numpy as np
import pytest
from gpusched import cli
from gpusched._commands.autoscale import read_trace
from messages import mention, mentions, problems_in, refuses

TIMES = {
    "prefill_base_s": 0.05,
    "prefill_s_per_token": 2e-4,
    "step_base_s": 0.02,
    "step_s_per_request": 4e-4,
    "max_batch": 200,
}
TARGETS = {"times": TIMES, "ttft_s": 1.0, "tpot_s": 0.05}
simulate = gs.serving.simulate_autoscaling


def trace(n=400):
    rng = np.random.default_rng(1)
    return np.column_stack(
        [np.cumsum(rng.exponential(0.2, n)), rng.integers(50, 1500, n), rng.integers(1, 200, n)]
    )


def test_a_day_follows_its_curve():
    day = gs.serving.daily_arrivals(trace(), mean_rate=2, hours=6, level_sigma=0, surge_factor=1, seed=3)
    assert day.ndim == 2 and day.shape[1] == 3 and np.all(np.diff(day[:, 0]) >= 0) and day[-1, 0] < 6 * 3600
    for hour in range(6):
        n = np.sum(day[:, 0] // 3600 == hour)
        assert n == pytest.approx(3600 * gs.serving.expected_rate(3600 * (hour + 0.5), mean_rate=2), rel=0.1)
    again = gs.serving.daily_arrivals(
        trace().tolist(), mean_rate=2, hours=6, level_sigma=0, surge_factor=1, seed=3
    )
    assert np.array_equal(day, again)
    for bad, message in ((trace()[::-1], "order of time"), ([[0, 1]], "rows")):
        with pytest.raises(gs.InvalidInput, match=message):
            gs.serving.daily_arrivals(bad)


def test_policies_of_a_day():
    day = gs.serving.daily_arrivals(trace(), mean_rate=4, hours=5, seed=1)
    fixed = gs.serving.fewest_fixed(day, **TARGETS)
    static = simulate(day, "fixed", start=fixed, **TARGETS)
    assert static.windows_met >= 0.99 and static.requests == len(day) and static.starts == 0
    assert static.gpu_h == pytest.approx(5 * 4 * (fixed.prefill + fixed.decode))
    ours = simulate(day, start=fixed, **TARGETS)
    assert ours == simulate(day, policy="forecast", start=fixed, **TARGETS)
    assert ours.both_met > 0.9 and len(ours.time_s) == 300 and ours.busy_gpu_h < ours.gpu_h
    assert pickle.loads(pickle.dumps(ours)) == copy.deepcopy(ours) == ours

    # A policy of one's own: an `Autoscaler` asked by hand is the same as by name.
    scaler = gs.serving.Autoscaler(start=fixed, **TARGETS)
    seen = []

    def mine(window):
        seen.append(window)
        return scaler.step(window)

    assert simulate(day, mine, start=fixed, **TARGETS) == ours
    assert sum(len(w.arrived) for w in seen) == len(day) and seen[0].ready == fixed and seen[0].seconds == 60
    pairs = simulate(
        day, lambda _: (fixed.prefill, fixed.decode), start=fixed, **TARGETS
    )
    assert pairs.gpu_h == static.gpu_h
    slow = simulate(day, "fixed", start=fixed, slowdown=1.5, **TARGETS)
    assert slow.ttft_s > static.ttft_s and slow.tpot_s > static.tpot_s


def test_exceptions_of_a_policy_surface_unchanged():
    class Mine(Exception):
        pass

    def bad(window):
        raise Mine

    with pytest.raises(Mine):
        simulate(trace(), bad, **TARGETS)
    with pytest.raises(gs.InvalidInput, match="policy's answer"):
        simulate(trace(), lambda _: 3, **TARGETS)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: simulate(trace(), "forcast"), "policy: 'forcast'; did you mean 'forecast'"),
        (lambda: simulate(trace(), 3), "policy: 3"),
        (lambda: simulate(trace(), start=(1,)), "start: "),
        (lambda: simulate(trace(), times={"max_bach": 3}), "max_bach did you mean 'max_batch'"),
        (lambda: simulate(trace()[::-1], **TARGETS), "arrivals[1]"),
        (lambda: gs.serving.pool_sizes(trace(), -1, **TARGETS), "rate: -1"),
        (lambda: gs.serving.pool_sizes(trace(), 1, **{**TARGETS, "ttft_s": 0.01}), "ttft_s: 0.01;"),
        (
            lambda: gs.serving.fewest_fixed([(0, 10, 10), (3.6e9, 10, 10)], **TARGETS),
            "arrivals[1]: a request at 3.6e+09 s; expected at most 1000000 intervals of 60 s",
        ),
        (
            lambda: gs.serving.fewest_fixed(trace(), max_replicas=1, **{**TARGETS, "ttft_s": 0.4}),
            "max_replicas: 1; expected enough",
        ),
        (lambda: gs.serving.Autoscaler(interval_s=0), "interval_s"),
    ],
)
def test_mistakes_are_named(call, message):
    with refuses(message):
        call()


def test_targets_that_idle_replicas_miss_are_named():
    """No number of replicas makes a prompt shorter: the message names the target and the share of prompts
    that miss it alone.
    """
    # Two windows of five minutes; of the second, 20 % of the prompts take 0.05 + 5000 * 2e-4 = 1.05 s, the
    # others 0.25 s.
    rows = [(2.0 * i, 1000, 20) for i in range(100)] + [
        (300 + 2.0 * i, 5000 if i % 5 == 0 else 1000, 20) for i in range(100)
    ]
    assert mention(
        problems_in(gs.serving.fewest_fixed, rows, **TARGETS),
        ["ttft_s: 1; expected idle replicas 99 % of the windows; 1 of 2 20 % of the prompts 10 %"],
    )
    assert gs.serving.fewest_fixed(rows, **{**TARGETS, "ttft_s": 1.06}).prefill >= 1
    assert gs.serving.fewest_fixed(rows, windows_met=0.5, **TARGETS).prefill >= 1
    assert gs.serving.fewest_fixed(rows, **{**TARGETS, "percent": 80}).prefill >= 1
    # An answer of two tokens waits for the transfer of its prompt's KV cache: 1000 * 1e-4 = 0.1 s for the
    # second one.
    rows = [(2.0 * i, 1000, 2) for i in range(100)]
    with refuses("tpot_s: 0.05; expected 1 of 1 100 % of the requests"):
        gs.serving.fewest_fixed(rows, **{**TARGETS, "times": {**TIMES, "transfer_s_per_token": 1e-4}})


def test_the_console_compares_policies(tmp_path, capsys):
    plain, azure, out = (tmp_path / name for name in ("plain.csv", "azure.csv", "out.json"))
    rows = trace()
    plain.write_text("time_s,input,output\n" + "".join(f"{t:.4f},{int(i)},{int(o)}\n" for t, i, o in rows))
    azure.write_text(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n"
        + "".join(
            f"2023-11-16 18:{int(t) // 60:02d}:{int(t) % 60:02d}.{int(t % 1 * 1e7):07d},{int(i)},{int(o)}\n"
            for t, i, o in rows
        )
    )
    assert (
        cli.main(["autoscale", str(plain), "--policies", "static,forecast,utilization", "-o", str(out)]) == 0
    )
    printed = capsys.readouterr().out
    assert "windows_met_pct" in printed and "means of 1 day of 400 requests" in printed
    found = {row["policy"]: row for row in json.loads(out.read_text())["days"]}
    assert list(found) == ["static", "forecast", "utilization"]
    # The same by hand.
    model, gpu = gs.serving.language_model("Llama-3-70B"), gs.serving.gpu_type("A100-80GB")
    replica = next(
        d for d in gs.serving.enumerate_deployments(model, [gpu], [8]) if d.name == "A100-80GB 1x4"
    )
    told = [(round(t, 4), i, o) for t, i, o in rows.tolist()]
    told = [(t - told[0][0], i, o) for t, i, o in told]
    mean = [sum(row[k] for row in told) / len(told) for k in (1, 2)]
    times = gs.serving.replica_times(
        model, [gpu], replica, replica, round(mean[0]), round(mean[1]), int(max(row[1] for row in told))
    )
    options = {"times": times, "ttft_s": 2.0, "tpot_s": 0.06}
    fixed = gs.serving.fewest_fixed(told, **options)
    static = simulate(told, "fixed", start=fixed, **options)
    assert found["static"]["gpu_hours"] == static.gpu_h
    assert found["static"]["windows_met_pct"] == 100 * static.windows_met
    assert found["static"]["requests_met_pct"] == 100 * static.both_met
    assert cli.main(f"autoscale {azure} --mean-rate 2 --hours 2 --days 2 --policies forecast".split()) == 0
    assert "means of 2 days" in capsys.readouterr().out


def test_failing_policies_are_reported_and_the_others_shown(tmp_path, capsys):
    file, out = tmp_path / "trace.csv", tmp_path / "out.json"
    # Half of the prompts take longer than 0.3 s on an idle replica, the others do not.
    file.write_text(
        "time_s,input,output\n" + "".join(f"{i},{8000 if i % 2 else 100},20\n" for i in range(120))
    )
    assert cli.main(["autoscale", str(file), "--ttft", "0.3", "-o", str(out)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2:5]] == ["forecast", "utilization", "token_rate"]
    (told,) = (line for line in lines if line.startswith("static"))
    assert mentions(
        told, "static: not found: --ttft: 0.3; expected idle replicas 99 % of the windows; 1 of 1"
    )
    policies = {row["policy"] for row in json.loads(out.read_text())["days"]}
    assert policies == {"forecast", "utilization", "token_rate"}
    # If nothing is left to show, it is an error.
    assert cli.main(["autoscale", str(file), "--ttft", "0.3", "--policies", "static"]) == 2
    assert mentions(capsys.readouterr().err, "gpusched: --ttft: 0.3; expected idle replicas")
    assert cli.main(["autoscale", str(file), "--max-replicas", "0"]) == 2
    assert mentions(capsys.readouterr().err, "--max-replicas: 0; expected 1 to 100000")


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (("2024-05-10 00:00:00.009930+00:00", "2024-05-10 00:00:01+00:00"), 0.99007),
        (("2024-05-10T00:00:00Z", "2024-05-10T00:00:00.5Z"), 0.5),
        (("2024-05-10 02:00:00.25+02:00", "2024-05-10 00:00:01.75+00:00"), 1.5),
        (("2024-05-10 00:00:00.25 -0330", "2024-05-10 03:30:01.75"), 1.5),
        (("2024-05-10 05:00:00+05", "2024-05-10 00:00:03"), 3),
        (("2023-11-16 18:17:03.9799600", "2023-11-16 18:17:04.0319600"), 0.052),
        (("2024-05-10", "2024-05-10 00:01:00"), 60),
        (("1.5", "2.75"), 1.25),
    ],
)
def test_times_as_pandas_and_others_write_them(texts, expected, tmp_path):
    file = tmp_path / "trace.csv"
    file.write_text(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(f"{text},2162,5\n" for text in texts)
    )
    assert read_trace(str(file)) == [(0.0, 2162, 5), (pytest.approx(expected, abs=1e-6), 2162, 5)]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--policies forcast", "forecast, utilization, token_rate; did you mean 'forecast'?"),
        ("--days 3", "--days: only with --mean-rate"),
        ("--prefill H100_1x3", "--prefill: 'H100 1x3'; expected one stage Llama-3-70B: H100 1x2,"),
        ("--prefill H100-1x4", "--prefill: 'H100-1x4'; one-stage deployment, as 'H100 1x4'"),
        ("--model Llama-3-7B", "--model: 'Llama-3-7B'; Llama-3-8B, Llama-3-70B, Llama-2-70B,"),
        ("--swing 0.3 --hours 2", "--swing, --hours: only with --mean-rate, stretches the trace"),
        ("--target-utilization 3", "gpusched --target-utilization 3 0.05 1"),
        ("--ttft 0.01", "gpusched: --ttft: 0.01; expected more than 0.0262991 s,"),
    ],
)
def test_mistakes_in_options_at_the_console(words, told, tmp_path, capsys):
    file = tmp_path / "trace.csv"
    file.write_text("time_s,input,output\n0,500,100\n1,500,100\n")
    words = [word.replace("_", " ") for word in words.split()]
    assert cli.main(["autoscale", str(file), *words]) == 2
    assert mentions(capsys.readouterr().err, told)


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([], "1 request; expected at least two"),
        (["1,ten,10"], "line 3: '1,ten,10'; expected a time and two numbers of tokens"),
        (["nan,10,10"], "line 3: 'nan,10,10'; expected a time and at least one token"),
        (["0,10,10"], "2 requests, all at the same time; expected different times"),
        (["-3600000000,10,10"], "3.6e+09 s after the first request; at most 6e+07 s (1,000,000"),
    ],
)
def test_mistakes_in_traces_at_the_console(rows, told, tmp_path, capsys):
    file = tmp_path / "trace.csv"
    file.write_text("\n".join(["time_s,input,output", "0,10,10", *rows, ""]))
    assert cli.main(["autoscale", str(file)]) == 2
    assert mentions(capsys.readouterr().err, told)
    file.write_text("time_s,in,out\n")
    assert cli.main(["autoscale", str(file)]) == 2
    assert mentions(capsys.readouterr().err, "line 1: expected columns time_s, input, output,")


def test_requests_of_burst_gpt(tmp_path, capsys):
    file = tmp_path / "burst.csv"
    file.write_text(
        "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
        "5,1,2.5,ChatGPT,472,18,490,Conversation log\n45.5,,1,GPT-4,1087,230,1317,API "
        "log\n118,,0,GPT-4,417,0,417,API log\n"
    )
    assert read_trace(str(file)) == [(0.0, 472, 18), (40.5, 1087, 230)]
    assert mentions(capsys.readouterr().out, "burst.csv: skipped 1 failed request")


def test_times_of_replicas_from_estimates():
    gpus = [gs.serving.gpu_type("H100")]
    model = gs.serving.language_model("Llama-3-70B")
    replica = next(
        d for d in gs.serving.enumerate_deployments(model, gpus, [4], degrees=[4]) if d.name == "H100 1x4"
    )
    times = gs.serving.replica_times(model, gpus, replica, replica, 1000, 200)
    assert times.prefill_gpus == times.decode_gpus == 4 and times.max_batch > 1
    seconds = gs.serving.estimate_throughput(model, gpus, replica, 2000, 1).prefill_s
    assert seconds <= times.prefill_base_s + 2000 * times.prefill_s_per_token <= 1.6 * seconds
    assert gs.serving.ReplicaTimes(max_batch=7).max_batch == 7
    assert gs.serving.pool_sizes(trace(), 5, times=times, ttft_s=2, tpot_s=0.1).prefill >= 1
