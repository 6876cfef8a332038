"""Reading a Kubernetes cluster: from files, folders and documents, and from the console."""

import copy
import json
import pickle

import gpusched as gs
import pytest
from gpusched import cli


def node(name, gpus=8, **spec):
    amounts = {"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": str(gpus)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"nvidia.com/gpu.product": "H100"}},
        "spec": spec,
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def pod(name, gpus, on=None, owner=None):
    metadata = {"name": name, "namespace": "ml"}
    if owner is not None:
        metadata["ownerReferences"] = [{"kind": owner, "name": f"of-{name}", "controller": True}]
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "8", "nvidia.com/gpu": str(gpus)}}}]}
    if on is not None:
        spec["nodeName"] = on
    status = {"phase": "Running" if on else "Pending"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def a_list(*items):
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}


DOCUMENT = a_list(
    node("n0"), node("n1", unschedulable=True), pod("a", 2, "n0", "ReplicaSet"), pod("b", 8, owner="Job"), pod("bare", 1, "n0")
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


def test_the_report_says_how_each_thing_was_read():
    reading = gs.io.read_kubernetes(DOCUMENT)
    rows = {(row.kind, row.what): row for row in reading.report.rows}
    silent = rows["Node", "not ready"]
    assert (silent.fidelity, silent.errs, silent.count, silent.examples) == ("approximated", "neither", 2, ["n0", "n1"])
    assert "without a taint that says so" in silent.how
    assert (rows["Node", "cordons"].fidelity, rows["Node", "cordons"].count) == ("exact", 1)
    assert rows["Pod", "requests"].fidelity == "exact"
    assert "PriorityClass" in [absent.kind for absent in reading.report.absent]
    assert str(reading) == str(reading.report)
    assert str(reading).startswith("Approximated:\n")
    document = json.loads(reading.report.to_json())
    assert len(document["rows"]) == len(reading.report.rows)
    assert document["absent"][0]["undecided"] == reading.report.absent[0].undecided


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


def test_options_say_who_may_move_and_be_evicted():
    def bare(**options):
        tasks = gs.io.read_kubernetes(DOCUMENT, **options).cluster.tasks
        return next(task for task in tasks if task.name == "ml/bare")

    assert not bare().preemptible
    assert bare(evict_bare_pods=True).preemptible
    assert gs.io.read_kubernetes(DOCUMENT, examples=0).report.rows[0].examples == []
    with pytest.raises(gs.InvalidInput, match="examples: -1; expected 0 to 1000"):
        gs.io.read_kubernetes(DOCUMENT, examples=-1)


def test_input_that_holds_no_cluster_is_told_what_it_holds(tmp_path):
    with pytest.raises(gs.InvalidInput, match="expected at least one Node .* found 1 pods, but no node"):
        gs.io.read_kubernetes(a_list(pod("a", 1)))
    with pytest.raises(gs.InvalidInput, match="the List is empty"):
        gs.io.read_kubernetes(a_list())
    with pytest.raises(gs.InvalidInput, match="expected a folder with files"):
        gs.io.read_kubernetes(tmp_path)
    with pytest.raises(gs.BackendError):
        gs.io.read_kubernetes(tmp_path / "missing.json")
    with pytest.raises(gs.InvalidInput, match="path: 3; expected a path"):
        gs.io.read_kubernetes(3)


def test_loaders_of_snapshots_name_the_import(tmp_path):
    path = tmp_path / "all.json"
    path.write_text(json.dumps(DOCUMENT))
    with pytest.raises(gs.InvalidInput, match="objects of Kubernetes .*gpusched import kubernetes"):
        gs.Cluster.from_json(path)


def test_the_console_imports_and_every_command_names_the_import(tmp_path, capsys):
    path, out, report = (str(tmp_path / name) for name in ("all.json", "cluster.json", "report.json"))
    (tmp_path / "all.json").write_text(json.dumps(DOCUMENT))
    assert cli.main(["import", "kubernetes", path, "-o", out, "--report", report, "--evict-bare-pods", "--examples", "1"]) == 0
    said = capsys.readouterr().out
    assert "2 nodes, 16 GPUs, 3 tasks" in said
    assert "Node, not ready" in said
    assert gs.Cluster.from_json(out) == gs.io.read_kubernetes(path, evict_bare_pods=True).cluster
    assert json.loads((tmp_path / "report.json").read_text())["rows"]
    for command in (["report", path], ["consolidate", path], ["preempt", path, "ml/b"], ["allocate", path, "ml/of-b"]):
        assert cli.main(command) == 2, command
        assert "`gpusched import kubernetes`" in capsys.readouterr().err
    assert cli.main(["import", "kubernetes", path, "-o", path]) == 2
    assert "is also read" in capsys.readouterr().err
