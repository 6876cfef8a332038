# SPDX-License-Identifier: Apache-2.0
"""Reading a Kubernetes cluster: from files, folders and documents, and from the console."""

import copy
import gzip
import json
import pickle

import gpusched as gs
import pytest
from gpusched import cli
from kubernetes_objects import a_list, node, pod
from messages import mentions, refuses

DOCUMENT = a_list(
    node("n0"),
    node("n1", unschedulable=True),
    pod("a", 2, "n0", "ReplicaSet"),
    pod("b", 8, owner="Job"),
    pod("bare", 1, "n0"),
)


def test_a_document_a_file_a_folder_and_parts_are_one_cluster(tmp_path):
    path = tmp_path / "all.json"
    path.write_text(json.dumps(DOCUMENT))
    reading = gs.io.read_kubernetes(DOCUMENT)
    assert reading.cluster.nodes.gpu_count.tolist() == [8, 8]
    assert reading.cluster.nodes.schedulable.tolist() == [True, False]
    assert [task.name for task in reading.cluster.tasks] == ["ml/a", "ml/b", "ml/bare"]
    assert gs.io.read_kubernetes(path) == reading
    assert gs.io.read_kubernetes(tmp_path) == reading
    assert gs.io.read_kubernetes([a_list(*DOCUMENT["items"][:2]), a_list(*DOCUMENT["items"][2:])]) == reading
    assert gs.io.read_kubernetes([path, DOCUMENT]).cluster == reading.cluster  # everything twice counts once


def test_the_report_lists_how_each_thing_was_read():
    reading = gs.io.read_kubernetes(DOCUMENT)
    rows = {(row.kind, row.what): row for row in reading.report.rows}
    assert (
        rows["Node", "cordons"].fidelity,
        rows["Node", "cordons"].count,
        rows["Node", "cordons"].examples,
    ) == ("exact", 1, ["n1"])
    assert rows["Pod", "requests"].fidelity == "exact"
    assert "PriorityClass" in [absent.kind for absent in reading.report.absent]
    assert str(reading) == str(reading.report)
    assert str(reading).startswith("Exact:\n")
    document = json.loads(reading.report.to_json())
    assert len(document["rows"]) == len(reading.report.rows)
    assert document["absent"][0]["undecided"] == reading.report.absent[0].undecided


def test_nodes_that_are_not_ready_receive_nothing_by_default():
    document = a_list(node("n0", ready=False), pod("b", 8))
    reading = gs.io.read_kubernetes(document)
    row = next(row for row in reading.report.rows if row.what == "not ready")
    assert (row.fidelity, row.errs, row.examples) == ("approximated", "too_strict", ["n0"])
    assert not gs.allocate(reading.cluster, "ml/b").placed
    assert gs.allocate(gs.io.read_kubernetes(document, open_unready_nodes=True).cluster, "ml/b").placed


def test_gzip_and_several_documents_in_a_file_are_read(tmp_path):
    packed, several, broken = (tmp_path / name for name in ("all.json.gz", "several.json", "broken.json.gz"))
    packed.write_bytes(gzip.compress(json.dumps(DOCUMENT).encode()))
    assert gs.io.read_kubernetes(packed) == gs.io.read_kubernetes(DOCUMENT)
    nodes, pods = a_list(*DOCUMENT["items"][:2]), a_list(*DOCUMENT["items"][2:])
    several.write_text(json.dumps(nodes, indent=4) + "\n" + json.dumps(pods, indent=4) + "\n")
    assert gs.io.read_kubernetes(several) == gs.io.read_kubernetes(DOCUMENT)
    several.write_text(json.dumps(nodes) + "\n{\n")
    with pytest.raises(gs.InvalidInput, match=r"several.json \(document 2\):2:"):
        gs.io.read_kubernetes(several)
    broken.write_bytes(packed.read_bytes()[:-20])
    with refuses("broken.json.gz: expected gzip"):
        gs.io.read_kubernetes(broken)


def test_readings_are_copied_compared_and_pickled():
    reading = gs.io.read_kubernetes(DOCUMENT)
    for other in (copy.copy(reading), copy.deepcopy(reading), pickle.loads(pickle.dumps(reading))):
        assert other == reading
        assert other.report == reading.report
        assert other.report.rows[0] == reading.report.rows[0]
        assert other.report.absent[0] == reading.report.absent[0]
    assert gs.io.read_kubernetes(a_list(node("n0"))) != reading
    assert "2 nodes" in repr(reading)
    assert "rows" in repr(reading.report)


def test_options_decide_moves_and_evictions():
    def bare(**options):
        tasks = gs.io.read_kubernetes(DOCUMENT, **options).cluster.tasks
        return next(task for task in tasks if task.name == "ml/bare")

    assert not bare().preemptible
    assert bare(evict_bare_pods=True).preemptible
    assert gs.io.read_kubernetes(DOCUMENT, examples=0).report.rows[0].examples == []
    with refuses("examples -1 0 1000"):
        gs.io.read_kubernetes(DOCUMENT, examples=-1)


def test_messages_about_input_without_a_cluster_name_its_content(tmp_path):
    with refuses("expected at least one Node found 1 pod, but no node"):
        gs.io.read_kubernetes(a_list(pod("a", 1)))
    with pytest.raises(gs.InvalidInput, match="the List is empty"):
        gs.io.read_kubernetes(a_list())
    with pytest.raises(gs.InvalidInput, match="expected a folder with files"):
        gs.io.read_kubernetes(tmp_path)
    with pytest.raises(gs.BackendError):
        gs.io.read_kubernetes(tmp_path / "missing.json")
    with refuses("path: 3; expected a path"):
        gs.io.read_kubernetes(3)


def test_the_console_imports(tmp_path, capsys):
    path, out, report = (str(tmp_path / name) for name in ("all.json", "cluster.json", "report.json"))
    (tmp_path / "all.json").write_text(json.dumps(DOCUMENT))
    assert (
        cli.main(
            f"import kubernetes {path} -o {out} --report {report} --evict-bare-pods --examples 1".split()
        )
        == 0
    )
    said = capsys.readouterr().out
    assert "2 nodes, 16 GPUs, 3 tasks" in said
    assert "Node, cordons" in said
    assert gs.Cluster.from_json(out) == gs.io.read_kubernetes(path, evict_bare_pods=True).cluster
    assert json.loads((tmp_path / "report.json").read_text())["rows"]
    assert cli.main(["import", "kubernetes", path, "-o", path]) == 2
    assert "is also read by this command" in capsys.readouterr().err


def imported(tmp_path, *items, options=()):
    """The snapshot of these objects, as the console writes it."""
    objects, cluster = tmp_path / "all.json", tmp_path / "cluster.json"
    objects.write_text(json.dumps(a_list(*items)))
    assert cli.main(["import", "kubernetes", str(objects), "-o", str(cluster), *options]) == 0
    return str(cluster)


DEDICATED = [{"key": "dedicated", "value": "serving", "effect": "NoSchedule"}]
PRESENT = [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]
"""A taint of all nodes."""
GPU_POD = {"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]}
TOLERANT = {"tolerations": [*GPU_POD["tolerations"], {"key": "dedicated", "operator": "Exists"}]}


def test_goals_count_nodes_that_new_tasks_may_use(tmp_path, capsys):
    cluster = imported(
        tmp_path,
        node("a", taints=DEDICATED + PRESENT), node("b", taints=PRESENT), node("c", taints=PRESENT),
        pod("a0", 1, "a", "ReplicaSet", **TOLERANT), pod("b0", 1, "b", "ReplicaSet", **GPU_POD),
        pod("b1", 1, "b", "ReplicaSet", **GPU_POD), pod("c0", 6, "c", "Job", **GPU_POD),
        pod("big", 8, owner="Job", **TOLERANT),
    )  # fmt: skip
    capsys.readouterr()
    assert cli.main(["consolidate", cluster, "--goal", "empty_nodes=1"]) == 0
    said = capsys.readouterr().out
    assert mentions(said, "not counted taints GPU model lack: dedicated=serving:NoSchedule (a)")
    assert "usable_by=TASK" in said and "vacated nodes with taints" not in said and "nvidia.com" not in said
    assert (
        cli.main(["consolidate", cluster, "--goal", "empty_nodes=1,usable_by=ml/of-big"]) == 0
    )  # a job: its pending pod
    said = capsys.readouterr().out
    assert mentions(said, "vacated nodes with taints GPU model lack: dedicated=serving:NoSchedule (a)")
    assert "not counted" not in said
    assert cli.main(["consolidate", cluster, "--goal", "empty_nodes=1,usable_by=ml/b0"]) == 0
    assert mentions(capsys.readouterr().out, "not counted, because ml/b0 could not run there 1 node")
    assert cli.main(["consolidate", cluster, "--goal", "empty_nodes=1,gpu_model=H10"]) == 2
    assert mentions(
        capsys.readouterr().err, "--goal: gpu_model: 'H10'; expected a GPU model of the cluster: 'H100'"
    )
    assert gs.consolidation.goal_nodes(gs.Cluster.from_json(cluster), {"empty_nodes": 1}) == ["b", "c"]


def test_a_pending_pod_without_an_owner_can_be_named(tmp_path, capsys):
    cluster = imported(
        tmp_path,
        node("a"),
        node("b"),
        pod("web", 4, "a", "Job"),
        pod("bare", 8),
        pod("other", 3, "b", "StatefulSet"),
    )
    capsys.readouterr()
    assert cli.main(["allocate", cluster, "ml/bare"]) == 1
    assert "ml/bare: not placed" in capsys.readouterr().out
    assert cli.main(["admit", cluster, "ml/bare", "--no-evictions"]) == 0
    assert mentions(capsys.readouterr().out, "move ml/other from b to a restarted")
    assert cli.main(["admit", cluster, "ml/bare", "--no-evictions", "--exempt", "a,b"]) == 1
    assert cli.main(["admit", cluster, "ml/bare", "--no-evictions", "--spare", "ml/other,ml/web"]) == 1
    capsys.readouterr()
    assert cli.main(["admit", cluster, "ml/nobody"]) == 2
    assert "; pending jobs: ml/bare\n" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["consolidate", cluster, "--exempt", "a", "b"])
    assert mentions(capsys.readouterr().err, "unrecognized arguments: b; --clear a,b")


def test_the_report_lists_omissions_of_its_figures(tmp_path, capsys):
    mig = {"nvidia.com/mig-1g.10gb": "4"}
    held = pod("m", 0, "a", "ReplicaSet")
    held["spec"]["containers"][0]["resources"]["requests"] = {"nvidia.com/mig-1g.10gb": "3"}
    cluster = imported(
        tmp_path, node("a", devices=mig), node("b", unschedulable=True), held, pod("x", 2, "b", "Job")
    )
    capsys.readouterr()
    assert cli.main(["report", cluster]) == 0
    said = capsys.readouterr().out
    assert mentions(said, "excluded (see --include-cordoned): 6 idle GPUs on 1 cordoned node: b")
    assert mentions(said, "not whole GPUs: 4 of nvidia.com/mig-1g.10gb, 1 free")
    assert cli.main(["report", cluster, "--include-cordoned"]) == 0
    assert "idle GPUs of 1 cordoned node" not in capsys.readouterr().out


def test_export_reports_moves_that_evictions_cannot_make(tmp_path, capsys):
    labels = {"app": "web"}
    budget = {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "ml"},
        "spec": {"selector": {"matchLabels": labels}, "minAvailable": 1},
        "status": {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1},
    }  # fmt: skip
    web = pod("web", 1, "a", "ReplicaSet", labels)
    web["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    items = (node("a"), node("b"), web, pod("other", 6, "b", "Job"), budget)
    plan, script = str(tmp_path / "plan.json"), str(tmp_path / "plan.sh")
    cluster = imported(tmp_path, *items)
    assert cli.main(["consolidate", cluster, "-o", plan]) == 0
    assert "disruption budget ml/web allows no eviction" in capsys.readouterr().out
    assert cli.main(["export", plan, "--to", "kubernetes", "-o", script]) == 0
    said = capsys.readouterr().err
    assert "note: the plan has 1 move by a copy, but the script evicts" in said
    assert "with --cluster CLUSTER.json, this names the disruption budgets that allow no eviction" in said
    assert cli.main(["export", plan, "--to", "kubernetes", "--cluster", cluster, "-o", script]) == 0
    said = capsys.readouterr().err
    refused = (
        "disruption budget ml/web allows no eviction of ml/web: kubectl drain would wait for it, and the kubectl "
        "script would not free a"
    )
    assert refused + "\n" in said
    assert "--cluster" not in said
    cluster = imported(tmp_path, *items, options=["--moves-by-eviction"])
    assert cli.main(["consolidate", cluster, "-o", plan]) == 0
    assert [move.task for move in gs.Plan.from_json(plan).moves] == ["ml/other"]  # which no budget protects
    capsys.readouterr()
    assert cli.main(["export", plan, "--to", "kubernetes", "-o", script]) == 0
    assert capsys.readouterr().err == ""
