# SPDX-License-Identifier: Apache-2.0
"""The console script, end to end through files."""

from __future__ import annotations

import json
from pathlib import Path

import gpusched as gs
import pytest
from clusters import document, make_node, make_task, tiny_document
from gpusched import cli
from messages import mentions


def test_from_a_generated_cluster_to_a_checked_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster, plan = str(tmp_path / "c.json"), str(tmp_path / "p.json")
    assert cli.main(f"generate asi --nodes 200 --seed 2 --layout spread -o {cluster}".split()) == 0
    assert "200 nodes" in capsys.readouterr().out
    assert gs.Cluster.from_json(cluster) == gs.sim.generate_cluster(nodes=200, seed=2, layout="spread")
    assert cli.main(["consolidate", cluster, "--preset", "fast", "-o", plan, "--report"]) == 0
    out = capsys.readouterr().out
    assert "% of the proven bound" in out and "the plan verifies" in out
    made = gs.Plan.from_json(plan)
    assert made.to_json() == gs.consolidate(gs.Cluster.from_json(cluster), preset="fast").to_json()
    assert cli.main(["verify", cluster, plan]) == 0
    assert f"vacates {len(made.vacated_nodes)} nodes" in capsys.readouterr().out
    assert cli.main(["explain", cluster, plan, made.vacated_nodes[0], "node-000"]) == 0
    assert "node-000" in capsys.readouterr().out


def test_nodes_left_uncleared_are_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster_file = str(tmp_path / "tiny.json")
    gs.Cluster.from_json(tiny_document()).to_json(cluster_file)
    assert cli.main(["consolidate", cluster_file, "--clear", "n0,n1"]) == 0
    out = capsys.readouterr().out
    assert mentions(out, "node 'n0' stays occupied")
    assert mentions(out, "node 'n1' stays occupied: task 'fixed' must stay (locked)")
    monkeypatch.setattr(cli.plans, "LEFT_SHOWN", 1)
    assert cli.main(["consolidate", cluster_file, "--clear", "n0,n1"]) == 0
    assert mentions(capsys.readouterr().out, "and 1 more; `gpusched explain`")
    assert cli.main(["consolidate", cluster_file, "--clear", "n0", "--clear", "n1"]) == 0  # both count
    assert mentions(capsys.readouterr().out, "2 nodes to clear stay occupied")
    assert cli.main(["consolidate", cluster_file, "--clear", "n0"]) == 0
    assert mentions(capsys.readouterr().out, "all nodes to clear are empty")
    command = ["consolidate", cluster_file, "--clear", "n0", "--exempt", "n1", "--open-price"]
    assert cli.main([*command, "500"]) == 0
    assert "1 node with 8 GPUs opened" in capsys.readouterr().out
    assert cli.main([*command, "1001"]) == 0
    assert mentions(capsys.readouterr().out, "at the open price of 1001 empty nodes of weight 8")


def test_frontier_prints_a_table_and_draws(
    cluster_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figure = tmp_path / "frontier.png"
    assert cli.main(["frontier", cluster_file, "--points", "4", "--plot", str(figure)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines.count(f"wrote {figure}") == 1
    assert lines[0].split() == ["price", "cost", "moves", "nodes", "vacated", "at", "most", "gap"]
    assert "bounds: counting" in lines
    assert figure.stat().st_size > 0
    assert cli.main(["frontier", cluster_file, "--points", "0"]) == 2
    assert mentions(capsys.readouterr().err, "--points 0 1 1000")


def test_a_goal_reports_whether_it_is_reached(
    cluster_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = str(tmp_path / "goal.json")
    assert cli.main(["consolidate", cluster_file, "--goal", "count=1,gpu_count=1", "-o", plan]) == 0
    assert "the goal is reached: " in capsys.readouterr().out
    assert gs.Plan.from_json(plan).goal == {"slots": {"gpu_count": 1}, "count": 1}
    assert cli.main(["consolidate", cluster_file, "--goal", "empty_nodes=100000"]) == 1
    assert mentions(capsys.readouterr().out, "the goal is not reached:")
    assert cli.main(["consolidate", cluster_file, "--goal", "empty_nodes=0"]) == 2
    assert mentions(capsys.readouterr().err, "--goal: /empty_nodes: integer from 1 to")
    with pytest.raises(SystemExit, match="2"):
        cli.main(["consolidate", cluster_file, "--goal", "empty_nodes"])
    assert mentions(capsys.readouterr().err, "'empty_nodes' is no goal")
    known = "empty_nodes, count, gpu_model, usable_by, gpu_count, cpu_milli, memory_mib"
    for bad, told in {
        "empty_nodes=3,empty_nodes=4": "empty_nodes is given twice",
        "nodes=3": f"no 'nodes'; {known}; did you mean 'empty_nodes'",
    }.items():
        with pytest.raises(SystemExit):
            cli.main(["consolidate", cluster_file, "--goal", bad])
        assert mentions(capsys.readouterr().err, told)
    for bad, told in {
        "empty_nodes=²": '--goal: /empty_nodes: integer, found "²"',
        "count=1,gpu_count=-1": "--goal: /slots/gpu_count: from 0 to 64, found -1",
    }.items():
        assert cli.main(["consolidate", cluster_file, "--goal", bad]) == 2
        assert mentions(capsys.readouterr().err, told)
    cluster = gs.Cluster.from_json(cluster_file)
    task, node = cluster.tasks[0].name, cluster.nodes[0].name
    for after in ([], ["--plan", plan]):
        assert cli.main(["explain-move", cluster_file, task, node, "--price", "500", *after]) == 0
        assert task in capsys.readouterr().out
    assert cli.main(["explain-move", cluster_file, task, "nowhere"]) == 2


def test_topology(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cluster, dot = tmp_path / "c.json", tmp_path / "c.dot"
    cluster.write_text(json.dumps(tiny_document()))
    assert cli.main(["topology", "show", str(cluster)]) == 0
    out = capsys.readouterr().out
    assert "3 nodes, 0 of unknown position" in out and out.splitlines()[0].split()[:2] == ["level", "domains"]
    assert cli.main(["topology", "show", str(cluster), "--dot"]) == 0
    drawn = capsys.readouterr().out
    assert "asw-1" in drawn and "n2" in drawn
    assert cli.main(["topology", "show", str(cluster), "--dot", "--no-nodes", "-o", str(dot)]) == 0
    ellipses = dot.read_text().count("ellipse")
    assert "asw-1" in dot.read_text() and "24 GPUs" in dot.read_text() and ellipses == 0
    assert cli.main(["topology", "show", str(cluster), "-o", str(dot)]) == 2


def test_topology_of_other_sources(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conf = tmp_path / "topology.conf"
    conf.write_text("SwitchName=top Switches=a,b\nSwitchName=a Nodes=n[0-1]\nSwitchName=b Nodes=n2\n")
    assert cli.main(["topology", "show", str(conf)]) == 0
    assert "3 nodes, 0 of unknown position" in capsys.readouterr().out
    assert cli.main(["topology", "show", str(conf), "--dot", "--cores"]) == 2
    machine = tmp_path / "topo.txt"
    machine.write_text(
        "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV4\t0-3\t0\nGPU1\tNV4\t X \t4-7\t1\n"
    )
    capsys.readouterr()
    assert cli.main(["topology", "show", str(machine)]) == 0
    out = capsys.readouterr().out
    assert "2 GPUs, 2 NUMA nodes, 2 sockets, 8 cores" in out and "100" in out and "note: sockets" in out
    assert cli.main(["topology", "show", str(machine), "--dot", "--cores"]) == 0
    assert capsys.readouterr().out.startswith("graph hardware {")
    assert cli.main(["topology", "show", str(machine), "--this-machine"]) == 2
    assert cli.main(["topology", "show"]) == 2
    assert cli.main(["topology", "show", str(machine), "--no-nodes"]) == 2
    assert cli.main(["topology", "show", str(machine), "--node-labels", str(conf)]) == 2
    assert mentions(capsys.readouterr().err, "only Topology Kueue or KAI")
    machine.write_text("nothing of the kind")
    assert cli.main(["topology", "show", str(machine)]) == 2
    assert "expected a machine" in capsys.readouterr().err


def test_topology_of_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    levels = '{"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Topology", "metadata": {"name": "t"}, '
    levels += '"spec": {"levels": [{"nodeLabel": "rack"}]}}'
    nodes = '{"kind": "Node", "metadata": {"name": "n0", "labels": {"rack": "r0"}}}, '
    nodes += '{"kind": "Node", "metadata": {"name": "n1"}}'
    topology, labels, both = (tmp_path / name for name in ("topology.yaml", "nodes.json", "both.json"))
    topology.write_text(levels)
    labels.write_text('{"kind": "List", "items": [' + nodes + "]}")
    both.write_text('{"kind": "List", "items": [' + levels + ", " + nodes + "]}")
    for arguments in ([str(topology), "--node-labels", str(labels)], [str(both)]):
        assert cli.main(["topology", "show", *arguments]) == 0
        assert "2 nodes, 1 of unknown position" in capsys.readouterr().out
        assert cli.main(["topology", "show", *arguments, "--dot"]) == 0
        assert '"r0' in capsys.readouterr().out
    assert cli.main(["topology", "show", str(topology)]) == 2
    assert "--node-labels" in capsys.readouterr().err


def test_reports(cluster_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["report", cluster_file, "--shapes", "1x8,8G128C,1x0.5", "--by", "gpu_model"]) == 0
    out = capsys.readouterr().out
    assert "GPU model" in out and "too few cores" in out and "of 128 GPUs" in out
    assert cli.main(["report", cluster_file, "--shapes", "8x128", "--nodes", "2"]) == 0
    out = capsys.readouterr().out.split("8 GPUs and 128 cores cannot use: ")[1].splitlines()
    worst = gs.fragmentation.unusable_nodes(gs.Cluster.from_json(cluster_file), (8, 128))
    assert out[0] == f"{len(worst):,}"
    assert [line.split(":")[0].strip() for line in out[1:3]] == [row.node for row in worst[:2]]
    assert "; runs " in out[1] and not out[3]
    assert cli.main(["report", cluster_file, "--nodes", "-1"]) == 2
    assert mentions(capsys.readouterr().err, "--nodes -1 0")
    assert cli.main(["report", cluster_file, "--shapes", "asi", "--csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("gpus,cpu_cores,") and len(lines) == 9
    assert lines[1] == ",".join(
        str(v) for v in gs.fragmentation.report(gs.Cluster.from_json(cluster_file), "asi")[0]
    )


def test_replay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "nodes.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\nn0,96000,100000,4,T4\n")
    pods = "".join(f"p{i},1000,1000,1,1000\n" for i in range(4))
    (tmp_path / "pods.csv").write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\n" + pods)
    lists = [str(tmp_path / "nodes.csv"), str(tmp_path / "pods.csv")]
    out = str(tmp_path / "end.json")
    assert (
        cli.main(["replay", *lists, "--placement", "fgd", "--resample-to", "2", "--seed", "1", "-o", out])
        == 0
    )
    text = capsys.readouterr().out
    assert "8 arrivals, 4 not placed" in text and "100 % requested" in text
    assert len(gs.Cluster.from_json(out).tasks) == 8


@pytest.mark.parametrize(
    ("to", "part"), [("csv", "step,wave,task"), ("kubernetes", "kubectl"), ("koordinator", "PodMigrationJob")]
)
def test_exports(to: str, part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cluster, plan = str(tmp_path / "c.json"), str(tmp_path / "p.json")
    Path(cluster).write_text(json.dumps(tiny_document()))
    assert cli.main(["consolidate", cluster, "-o", plan]) == 0
    capsys.readouterr()
    command = ["export", plan, "--to", to, *(["--cluster", cluster] if to != "csv" else [])]
    assert cli.main(command) == 0
    assert part in capsys.readouterr().out
    assert cli.main([*command, "-o", str(tmp_path / "out")]) == 0
    assert part in (tmp_path / "out").read_text()


def test_figures(cluster_file: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    causes, cells = tmp_path / "causes.png", tmp_path / "cells.png"
    assert cli.main(["report", cluster_file, "--plot", str(causes)]) == 0
    assert cli.main(["plot", "occupancy", cluster_file, "-o", str(cells)]) == 0
    for what in ("gpus", "switches"):
        assert cli.main(["plot", what, cluster_file, "-o", str(tmp_path / f"{what}.png")]) == 0
        assert (tmp_path / f"{what}.png").stat().st_size > 5000
    for path in (causes, cells):
        assert path.read_bytes().startswith(b"\x89PNG")
    assert cli.main(["plot", "occupancy", cluster_file, "-o", str(tmp_path / "x.png"), "--gpus", "7"]) == 2


def test_taints_of_all_nodes_with_the_same_shared_gpus_are_not_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shared = {"gpu_model": None, "gpu_count": 0, "devices": [{"device_class": "gpu (shared)", "count": 4}]}
    taint = {"key": "gpu", "value": "", "effect": "NoSchedule"}
    nodes = [make_node(f"l{i}", taints=[taint], **shared) for i in range(2)]
    nodes.append(make_node("control-plane", gpu_model=None, gpu_count=0))
    tasks = [make_task("t", node="l0", gpu_count=0, tolerations=[{"key": "gpu", "operator": "Exists"}])]
    tasks += [{**tasks[0], "name": "u", "node": "l1"}]
    path = str(tmp_path / "c.json")
    for own, told in (([], False), ([{**taint, "key": "dedicated"}], True)):
        nodes[0]["taints"] = [taint, *own]
        content = {**document(nodes, tasks), "version": 2}
        gs.Cluster.from_json(content).to_json(path)
        assert cli.main(["consolidate", path, "--clear", "l0", "--objective", "nodes"]) == 0
        out = capsys.readouterr().out
        assert "vacated: l0" in out
        assert ("taints that others of their GPU model lack" in out) == told
