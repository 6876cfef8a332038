# SPDX-License-Identifier: Apache-2.0
"""Reading a Slurm cluster: from files and documents, and from the console."""

import copy
import json
import pickle
import re
from pathlib import Path

import gpusched as gs
import pytest
from gpusched import cli
from gpusched._views.summary import pending_jobs
from messages import mentions, refuses

SAMPLES = Path(__file__).parents[2] / "golden" / "io" / "slurm"
NODES, JOBS, PARTITIONS, TOPOLOGY = (
    SAMPLES / name for name in ("nodes.txt", "jobs.txt", "partitions.txt", "topology.conf")
)
DOCUMENT = json.loads((SAMPLES / "cluster-v0.0.43.json").read_text())


def test_files_documents_and_lists_are_one_cluster():
    reading = gs.io.read_slurm(NODES, JOBS, PARTITIONS)
    assert sorted(reading.cluster.nodes.gpu_count.tolist()) == [1, 2, 4, 8, 8, 8]
    assert [task.name for task in reading.cluster.tasks][:3] == ["1201/0", "1201/1", "1202/0"]
    assert gs.io.read_slurm([NODES, JOBS], PARTITIONS) == reading
    assert gs.io.read_slurm(DOCUMENT).cluster.tasks[0].gpus == reading.cluster.tasks[0].gpus
    split = [{"meta": DOCUMENT["meta"], key: DOCUMENT[key]} for key in ("nodes", "jobs", "partitions")]
    assert gs.io.read_slurm(*split).cluster.tasks[0].gpus == [1, 2, 4, 5]
    assert gs.io.read_slurm(NODES, TOPOLOGY).cluster.nodes["gpu01"].network == ["spine", "leaf1"]


def test_readings_are_reported_copied_and_pickled():
    reading = gs.io.read_slurm(NODES, JOBS)
    rows = {(row.kind, row.what): row for row in reading.report.rows}
    assert rows["Job", "licenses"].errs == "too_lax"
    assert rows["Node", "drained GPUs"].fidelity == "exact"
    assert "Partition" in [absent.kind for absent in reading.report.absent]
    assert str(reading).startswith("Left out:\n")
    for other in (copy.copy(reading), copy.deepcopy(reading), pickle.loads(pickle.dumps(reading))):
        assert other == reading


def test_options_decide_evictions_and_pending_arrays():
    def task(name, **options):
        return next(
            t for t in gs.io.read_slurm(NODES, JOBS, PARTITIONS, **options).cluster.tasks if t.name == name
        )

    assert not task("1201/0").preemptible
    assert task("1201/0", ignore_protection=True).preemptible
    assert not task("1202/0", ignore_protection=True).preemptible
    assert task("1202/0", ignore_protection=True, evict_without_requeue=True).preemptible
    assert (
        len(gs.io.read_slurm(NODES, JOBS, array_tasks=1).cluster.tasks)
        == len(gs.io.read_slurm(NODES, JOBS).cluster.tasks) - 9
    )
    with refuses("examples -1 0 1000"):
        gs.io.read_slurm(NODES, examples=-1)


def test_messages_about_input_without_a_cluster_name_its_content(tmp_path):
    with pytest.raises(gs.InvalidInput, match="expected at least one text"):
        gs.io.read_slurm()
    with pytest.raises(gs.InvalidInput, match="found none, but 9 jobs"):
        gs.io.read_slurm(JOBS)
    with pytest.raises(gs.BackendError):
        gs.io.read_slurm(tmp_path / "missing")
    with refuses("path: 3; expected a path"):
        gs.io.read_slurm(3)
    with refuses("output of Slurm's scontrol as text: `gpusched import slurm`"):
        gs.Cluster.from_json(NODES)


def test_the_console_imports(tmp_path, capsys):
    out, report = str(tmp_path / "cluster.json"), tmp_path / "report.json"
    files = [str(path) for path in (NODES, JOBS, PARTITIONS, TOPOLOGY)]
    assert (
        cli.main(["import", "slurm", *files, "-o", out, "--report", str(report), "--array-tasks", "2"]) == 0
    )
    said = capsys.readouterr().out
    assert "6 nodes, 31 GPUs" in said
    assert "Job, licenses" in said
    assert said.count(f"wrote {report}") == said.count(f"wrote {out}") == 1
    assert gs.Cluster.from_json(out) == gs.io.read_slurm(*files, array_tasks=2).cluster
    assert json.loads(report.read_text())["rows"]
    assert cli.main(["report", out]) == 0
    assert cli.main(["import", "slurm", *files, "-o", out, "--evict-bare-pods"]) == 2
    assert "--evict-bare-pods: not an option of import slurm" in capsys.readouterr().err


REASONS = {"n5": "bad fan [root@2026-11-28T09:00:00]", "n6": "Not responding"}


def a_job(number, gpus, on="", nodes=1, requeue=1, reason="None", more=""):
    """The record of a job of `scontrol show jobs`, with `gpus` GPUs on each of its nodes."""
    tres = f"cpu={8 * gpus * nodes},mem={8 * gpus * nodes}G,node={nodes},gres/gpu={gpus * nodes}"
    lines = [
        f"JobId={number} JobName=j",
        f"Priority={100 - number} Nice=0 Account=a QOS=normal",
        f"JobState={'RUNNING' if on else 'PENDING'} Reason={reason} Dependency=(null)",
        f"Requeue={requeue} Restarts=0 BatchFlag=1",
        "SubmitTime=2026-11-27T05:00:00",
        f"StartTime={'2026-11-27T09:00:00' if on else 'Unknown'}",
        f"Partition=p NodeList={on or '(null)'}",
        f"NumNodes={nodes} NumCPUs={8 * gpus * nodes} NumTasks={nodes} CPUs/Task={8 * gpus}",
        f"ReqTRES={tres}",
    ]
    lines += [more] * bool(more)
    if on:
        lines += [
            f"AllocTRES={tres}",
            f"Nodes={on} CPU_IDs=0-{8 * gpus - 1} Mem=0 GRES=gpu:h100:{gpus}(IDX:0-{gpus - 1})",
        ]
    return "\n   ".join(lines) + "\n\n"


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Four nodes in use, one drained and one down. Jobs 20 and 21 start after moves, 22 is held."""
    folder = tmp_path_factory.mktemp("slurm")
    states = {"n1": "MIXED", "n2": "MIXED", "n3": "MIXED", "n4": "MIXED", "n5": "IDLE+DRAIN", "n6": "DOWN"}
    nodes = "".join(
        f"NodeName={name} CPUTot=64 RealMemory=65536 Gres=gpu:h100:8 State={state} Partitions=p\n"
        f"   Reason={REASONS.get(name, '(null)')}\n\n"
        for name, state in states.items()
    )
    jobs = a_job(11, 2, "n1") + a_job(12, 4, "n2") + a_job(13, 6, "n3", requeue=0) + a_job(14, 2, "n4")
    jobs += a_job(20, 8) + a_job(21, 8, nodes=2) + a_job(22, 1, reason="JobHeldUser") + a_job(23, 8, nodes=9)
    jobs += a_job(24, 1, more="OverSubscribe=NO") + a_job(25, 1, nodes=7)
    (folder / "all.txt").write_text(nodes + jobs + "PartitionName=p Nodes=n[1-6] State=UP\n")
    names = {name: str(folder / f"{name}.json") for name in ("c", "d", "p")}
    assert cli.main(["import", "slurm", str(folder / "all.txt"), "-o", names["c"]]) == 0
    content = gs.Cluster.from_json(names["c"]).to_json()
    content["nodes"][0]["schedulable"] = False
    gs.Cluster.from_json(content).to_json(names["d"])
    assert cli.main(["consolidate", names["c"], "-o", names["p"]]) == 0
    return names


@pytest.mark.parametrize(
    "command",
    [
        "report {c}",
        "why {c} 20",
        "why {c} 21",
        "why {c} 23",
        "why {c} 20 --on n5",
        "why {c} 20 --on n6",
        "why {c} 24",
        "why {c} 24 --on n1",
        "why {c} 25",
        "allocate {c} 20",
        "allocate {c} 11",
        "allocate {c} 22 23",
        "allocate {c} 24",
        "allocate {c} 25",
        "admit {c} 20",
        "admit {c} 23",
        "preempt {c} 20",
        "preempt {c} --job 21",
        "consolidate {c}",
        "consolidate {c} --goal empty_nodes=9",
        "blockers {c}",
        "drain-order {c} --all --batch 2",
        "frontier {c}",
        "what-if {c} --add-nodes n1=1",
        "what-if {c} --uncordon n*",
        "what-if {c} --uncordon n1",
        "what-if {c} --uncordon x*",
        "what-if {c} --remove n3 --no-consolidate",
        "diff {c} {d}",
        "verify {c} {p}",
        "explain {c} {p} n3",
        "explain-move {c} 13/0 n1",
        "explain-move {c} 11/0 n5",
        "explain-move {c} 11/0 n6",
        "plan-page {p} {c}",
    ],
)
def test_answers_about_a_slurm_cluster_are_in_its_words(command, answers, capsys):
    cli.main([word.format(**answers) for word in command.split()])
    said = capsys.readouterr()
    text = re.sub(r"<style>.*?</style>", "", said.out, flags=re.S) + said.err
    assert text
    words = r"(?i)\b(?:pods?|namespaces?|owners?|(?<!-)cordon\w*|safe-to-evict|kubectl|claims)\b"
    words += r"|anti.affinity|node\.kubernetes\.io|slurm/all|slurm/nodes-of"
    assert not re.findall(words, text), text


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("why {c} 20 --on n5", "drained bad fan"),
        ("why {c} 20 --on n6", "not ready Not responding"),
        ("why {c} 20", "resume n5 (drained: bad fan) if that is fixed"),
        ("explain-move {c} 11/0 n5", "drained bad fan"),
        ("what-if {c} --uncordon n*", "n5 is drained: bad fan"),
        ("what-if {c} --uncordon x*", "matches no drained node"),
        ("blockers {c}", "13 never moves: Requeue=0 forbids moves"),
    ],
)
def test_answers_give_the_reasons_that_slurm_gives(command, said, answers, capsys):
    cli.main([word.format(**answers) for word in command.split()])
    told = capsys.readouterr()
    assert mentions(told.out + told.err, said)


def test_names_as_slurm_writes_them(tmp_path, capsys):
    cluster = str(tmp_path / "cluster.json")
    gs.io.read_slurm(NODES, JOBS, PARTITIONS).cluster.to_json(cluster)

    def told(*command):
        status = cli.main([command[0], cluster, *command[1:]])
        return status, capsys.readouterr().out

    for name, meant in {"1220": "1220_0", "1220_[1-9%2]": "1220_0", "1230+1": "1230"}.items():
        status, said = told("why", name)
        first, _, rest = said.partition("\n")
        assert mentions(first, f"{name} {meant}") and (status, rest) == told("why", meant)
        assert told("allocate", name) == told("allocate", meant)
    for name in ("9999", "1230+7", "12", "1220_"):
        assert cli.main(["why", cluster, name]) == 2
        assert mentions(capsys.readouterr().err, f"name {name} job or task")


@pytest.mark.parametrize("command", [("why", "1210"), ("what-if", "--no-consolidate")])
def test_answers_give_the_start_that_slurm_plans(command, tmp_path, capsys):
    cluster = str(tmp_path / "cluster.json")
    gs.io.read_slurm(NODES, JOBS, PARTITIONS).cluster.to_json(cluster)
    assert cli.main([command[0], cluster, *command[1:]]) == 0
    assert "Slurm plans to start it at 2026-11-22T06:00:00" in capsys.readouterr().out


def test_reports_have_the_priorities_of_slurm(tmp_path):
    cluster = gs.io.read_slurm(NODES, JOBS, PARTITIONS).cluster
    said = {row.job: row.priority for row in pending_jobs(cluster)}
    assert (said["1210"], said["1220_0"]) == (5000, 0)
    content = cluster.to_json()
    for task in content["tasks"]:
        task["priority"] -= 2**32 if task["name"].startswith("1220") else 0
    said = {row.job: row.priority for row in pending_jobs(gs.Cluster.from_json(content))}
    assert (said["1210"], said["1220_0"]) == ("5,000 in tier +1", "0 in tier +0")
