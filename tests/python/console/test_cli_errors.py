# SPDX-License-Identifier: Apache-2.0
"""What the console script says of bad options and bad files: all of it, one line each, exit code 2."""

from __future__ import annotations

import json
from pathlib import Path

import gpusched as gs
import pytest
from clusters import document, make_node, make_task
from gpusched import cli
from messages import mention, mentions, refused

Files = dict[str, str]


@pytest.fixture
def files(cluster_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    """What the words in capitals of a command line stand for."""
    monkeypatch.chdir(tmp_path)
    gs.consolidate(gs.Cluster.from_json(cluster_file)).to_json("plan.json")
    return {"CLUSTER": cluster_file, "PLAN": "plan.json", "OUTPUT": "new"}


def words(line: str, files: Files) -> list[str]:
    return [files.get(word, word) for word in line.split()]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ("report missing.json", "missing.json"),
        ("consolidate CLUSTER -o no/such/folder.json", "no/such/folder.json"),
        ("explain CLUSTER CLUSTER n0", "gpusched.plan"),
        ("replay missing.csv missing.csv", "missing.csv"),
    ],
)
def test_bad_input_is_2_and_one_clean_message(
    arguments: str, part: str, files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(words(arguments, files)) == 2
    captured = capsys.readouterr()
    assert mentions(captured.err, part) and "Traceback" not in captured.err
    assert captured.err.startswith("gpusched: ")


@pytest.mark.parametrize(
    "arguments", ["", "nonsense", "report", "report c.json --shapes x", "consolidate c.json --preset x"]
)
def test_bad_usage_is_2(arguments: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        cli.main(arguments.split())
    assert raised.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_all_problems_of_a_file_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps(document([make_node("n0"), make_node("n0")], [make_task("t", node="nowhere")])))
    assert cli.main(["report", str(bad)]) == 2
    assert capsys.readouterr().err.count("gpusched: ") == 2


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (
            "consolidate c.json --depth x --preset y --time-limit z --wrong",
            ["--depth: invalid", "--preset: invalid", "--time-limit: invalid", "--wrong"],
        ),
        ("report --shapes x --by y", ["--shapes: 'x'", "--by: invalid 'y'", "CLUSTER.json"]),
        ("consolidate c.json --policies fewest_pods", ["'fewest_pods' is no choice; expected KIND=NAME"]),
        ("consolidate c.json --policies a=b,a=c", ["a=b,a=c twice"]),
        ("consolidate c.json --policies a=b --policies a=c", ["'a' is given twice"]),
    ],
)
def test_all_options_that_cannot_be_parsed_are_reported(
    arguments: str, parts: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as raised:
        cli.main(arguments.split())
    assert raised.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(parts)
    for line, part in zip(lines, parts):
        assert mentions(line, part) and line.startswith(f"gpusched {arguments.split()[0]}: ")


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (
            "consolidate CLUSTER --depth 0 --exempt nowhere --seed -1 --rounds 0",
            ["--exempt unknown node 'nowhere'", "--seed -1", "--depth 0", "--rounds 0"],
        ),
        ("consolidate CLUSTER --policies node_order=x", ["node_order: 'x'; fewest_pods,"]),
        ("report CLUSTER --shapes 1x8 --job-gpus 99999999999", ["--job-gpus 99999999999 1 100000000"]),
        (
            "report CLUSTER --shapes 0x8,-1x3,1xnan",
            ["--shapes[2]: nan; expected a number", "--shapes[0] gpus 0", "--shapes[1] gpus -1"],
        ),
        ("generate --nodes -3 --load nan --seed -1 -o OUTPUT", ["--seed -1", "--nodes -3", "--load nan"]),
        ("explain CLUSTER PLAN here there", ["node: unknown node 'here'", "node: unknown node 'there'"]),
    ],
)
def test_all_options_out_of_range_are_reported(
    arguments: str, parts: list[str], files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    assert mention(refused(words(arguments, files), capsys), parts)


@pytest.mark.parametrize(
    ("text", "suffix", "part"),
    [
        ("[" * 200_000, "json", ": nested deeper than 64 levels"),
        ('{"pods": [], "pods": []}', "json", ": key 'pods' appears more than once"),
        ('{"pods": NaN}', "json", ":1:10: not a JSON document"),
        ("{", "json", ":1:1: not a JSON document"),
        ("[1, 2]", "json", ": expected a mapping"),
        ("pods: 1\npods: 2\n", "yaml", ": key 'pods' appears more than once"),
        ("a: &a 1\nb: *a\n", "yaml", ":2:4: expected no aliases, found *a"),
        ("a: 1\n---\nb: 2\n", "yaml", ": expected one document, found 2"),
    ],
)
def test_bad_documents_of_every_command_that_reads_one(
    text: str, suffix: str, part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if suffix == "yaml" and not gs.io.reads_yaml():
        pytest.skip("this build reads no YAML")
    bad, cluster = tmp_path / f"bad.{suffix}", tmp_path / "c.json"
    bad.write_text(text)
    cluster.write_text(json.dumps(document([make_node("n0")], [])))
    commands = [["plan-serving", str(bad)]]
    if suffix == "json":
        commands += [["allocate", str(cluster), str(bad)], ["control", "--config", str(bad), "--dry-run"]]
    for command in commands:
        (problem, *_) = refused(command, capsys)
        assert problem.startswith(str(bad)) and mentions(problem, part)


def test_a_bad_job_is_reported_with_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cluster = tmp_path / "c.json"
    cluster.write_text(json.dumps(document([make_node("n0")], [])))
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    pod = {"count": 1, "cpu_milli": 1, "memory_mib": 1, "gpu_count": 1}
    one.write_text(json.dumps({"name": "one", "pods": [{**pod, "cpu_milli": "x"}]}))
    two.write_text(json.dumps({"name": "two", "pods": [{**pod, "count": 0.5}], "size": 1}))
    found = refused(["allocate", str(cluster), str(one), str(two)], capsys)
    assert mentions(found[0], f'{one}: /pods/0/cpu_milli: integer, found "x"')
    assert mentions(found[1], f"{two}: /pods/0/count: expected an integer")
    assert mentions(found[2], f"{two}: /size: unknown field;")
    assert len(found) == 3


@pytest.mark.parametrize("command", ["admit", "allocate"])
def test_a_job_that_is_not_there_is_answered_with_those_that_wait(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = tmp_path / "cluster.json"
    tasks = [make_task(f"t{i}", job=f"ml/train-{i}") for i in range(12)] + [
        make_task("runs", job="ml/runs", node="n0", gpus=[0])
    ]
    cluster.write_text(json.dumps(document([make_node("n0")], tasks)))
    assert cli.main([command, str(cluster), "ml/x"]) == 2
    said = capsys.readouterr().err
    named = ", ".join(f"ml/train-{i}" for i in range(8))
    assert mentions(said, f"job: 'ml/x'; JOB.json; pending jobs: {named} and 4 others")
    assert cli.main([command, str(cluster), "train-11"]) == 2
    assert capsys.readouterr().err.endswith("; pending jobs: ml/train-11\n")


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (
            "export PLAN --cluster CLUSTER --default-namespace x",
            ["--default-namespace: not an option of export --to csv"],
        ),
        (
            "report CLUSTER --csv --nodes 3 --job-gpus 64 --cores-per-gpu 1",
            [f"--{name}: not an option of report --csv" for name in ("cores-per-gpu", "job-gpus", "nodes")],
        ),
        (
            "topology show CLUSTER -o OUTPUT --no-nodes --cores",
            [f"--{name}: only with --dot" for name in ("output", "no-nodes", "cores")],
        ),
        ("plot gpus CLUSTER -o OUTPUT --gpus 8", ["--gpus: not an option of plot gpus"]),
        ("kube snapshot -o OUTPUT --raw --schedulers a", ["--schedulers: not an option"]),
    ],
)
def test_options_that_would_be_ignored_are_refused(
    arguments: str, parts: list[str], files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    assert mention(refused(words(arguments, files), capsys), parts)
    assert not Path(files["OUTPUT"]).exists()
