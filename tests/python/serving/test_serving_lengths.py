# SPDX-License-Identifier: Apache-2.0
"""Workloads with recorded lengths, or a distribution of them, from Python and the console."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gpusched import cli, serving
from messages import mention, mentions, problems_in
from schemas import validator
from solvers import needs_solver

TRACE = "Timestamp,Request tokens,Response tokens\n5,100,20\n6,3000,5\n8,100,20\n9,400,0\n10,80,60\n"
LENGTHS = [[80, 60], [100, 20, 2], [3000, 5]]


def request(workload: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "gpus": {"H100": {"available": 16, "price": 3.0}},
        "models": {"Llama-3-8B": {"workloads": {"chat": workload}}},
        **more,
    }


def test_a_dict_names_a_trace_relative_to_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.csv").write_text(TRACE)
    missing = problems_in(serving.request_to_dict, request({"trace": "t.csv"}))
    assert mention(missing, ["request: /models/Llama-3-8B/workloads/chat/trace: t.csv"])
    monkeypatch.chdir(tmp_path)
    document = serving.request_to_dict(request({"trace": "t.csv"}))
    workload = document["models"]["Llama-3-8B"]["workloads"]["chat"]
    assert workload == {"rate": pytest.approx(3 / 5), "lengths": LENGTHS, "left_out": 1}
    assert serving.request_to_dict(document) == document
    assert serving.request_to_dict(request({"trace": str(tmp_path / "t.csv")})) == document


@pytest.mark.parametrize(
    ("workload", "valid"),
    [
        ({"trace": "t.csv"}, True),
        ({"trace": "t.csv", "rate": 2, "prefix_hits": 0.5}, True),
        ({"lengths": [[5, 6], [7, 8, 0.5]], "rate": 2}, True),
        ({"input": 5, "output": 6, "rate": 2, "targets": {"latency_p95_s": 3}}, True),
        ({"trace": "t.csv", "input": 5}, False),
        ({"lengths": [[5, 6]], "trace": "t.csv"}, False),
        ({"lengths": [[5, 6], [7, 8]], "arrivals": [0, 1], "rate": 2}, True),
        ({"lengths": [], "rate": 2}, False),
        ({"lengths": [[5]], "rate": 2}, False),
        ({"lengths": [[5, 0]], "rate": 2}, False),
        ({"lengths": [[5, 6, 0]], "rate": 2}, False),
        ({"rate": 2}, False),
        ({"input": 5, "output": 6, "rate": 2, "prefix_hits": 1}, False),
    ],
)
def test_the_schema_and_the_reader_agree(
    workload: dict[str, Any], valid: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.csv").write_text(TRACE)
    monkeypatch.chdir(tmp_path)
    assert validator("serving-request.v2").is_valid(request(workload)) == valid
    if valid:
        assert serving.request_to_dict(request(workload))
    else:
        assert problems_in(serving.request_to_dict, request(workload))


def test_lengths_with_arrivals_have_no_weights() -> None:
    workload = {"lengths": [[5, 6, 3], [7, 8]], "arrivals": [0, 1], "rate": 2}
    assert mentions(problems_in(serving.request_to_dict, request(workload)), "arrivals weights")


def test_the_console_finds_the_trace_beside_the_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    needs_solver()
    (tmp_path / "t.csv").write_text(TRACE)
    path = tmp_path / "request.json"
    path.write_text(json.dumps(request({"trace": "t.csv", "rate": 4})))
    words = [
        "plan-serving",
        str(path),
        "--latency-p90",
        "5",
        "--ttft-p95",
        "1",
        "-o",
        str(tmp_path / "p.json"),
    ]
    assert cli.main(words) == 0
    printed = capsys.readouterr().out
    assert mentions(printed, "latency_p90_s") and mentions(printed, "left out trace 'chat' 1")
    plan = json.loads((tmp_path / "p.json").read_text())
    validator("serving-plan.v2").validate(plan)
    (latency,) = plan["latencies"]
    assert latency["workload"] == "chat" and latency["rate"] == 4 and latency["met"]
    assert 0 < latency["ttft_p95_s"] <= 1 and 0 < latency["latency_p90_s"] <= 5
    assert "latency_p99_s" not in latency
    path.write_text(json.dumps(request({"trace": "none.csv", "rate": 4})))
    assert cli.main(["plan-serving", str(path)]) == 2
    assert mentions(capsys.readouterr().err, "request.json /workloads/chat/trace none.csv")


def test_the_longest_request_is_named() -> None:
    needs_solver()
    plan = serving.plan_serving(request({"lengths": [[100, 20, 99], [9_000_000, 7, 1]], "rate": 2}))
    assert plan.makespan is None
    assert mentions(plan.binding[0], "workload 'chat' longest request 9000000 7")


def test_simulated_requests_have_the_lengths_of_the_distribution() -> None:
    # Alone on its replica, a request takes as long as its lengths say.
    asked = request({"lengths": [[100, 20, 3], [3000, 5, 1]], "rate": 1e-6})
    replicas = [{"model": "Llama-3-8B", "deployment": "H100 1x1", "count": 1, "share": {"chat": 1.0}}]
    (kind,) = serving.simulate_latency(asked, replicas, requests=4000, seed=1).kinds
    ttft, counts = np.unique(np.round(kind.ttft, 9), return_counts=True)
    assert len(ttft) == 2 and counts[0] / 4000 == pytest.approx(0.75, abs=0.03)
    for seconds, lengths in zip(ttft, ([100, 20], [3000, 5])):
        alone = request({"input": lengths[0], "output": lengths[1], "rate": 1e-6})
        (same,) = serving.simulate_latency(alone, replicas, requests=10).kinds
        assert seconds == pytest.approx(same.ttft[0], rel=0.02)


def test_other_functions_with_distributions() -> None:
    asked = request({"lengths": [[100, 20, 3], [3000, 5, 1]], "rate": 2})
    asked["models"]["Llama-3-8B"]["workloads"]["code"] = {"input": 9000, "output": 9, "rate": 1}
    monitor = serving.WorkloadMonitor(asked)
    assert monitor.kind_of(200, 15) == ("Llama-3-8B", "chat")
    assert monitor.kind_of(8000, 10) == ("Llama-3-8B", "code")
    refused = problems_in(serving.deployment_costs, asked)
    assert mention(refused, ["workload 'chat' lengths not supported"])
