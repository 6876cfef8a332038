# SPDX-License-Identifier: Apache-2.0
"""Snapshots through the API of a cluster: a fake API server serves pages and errors; tests/kubernetes has a
real one.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gpusched as gs
import pytest
from fake_kubernetes_api import FakeApi, serving, thing
from gpusched import cli
from gpusched.kubernetes._snapshot import KINDS
from messages import mentions, naming, problems_in

pytest.importorskip("kubernetes")
SOURCES = Path(__file__).resolve().parents[3]
NODES, PODS, BUDGETS = "/api/v1/nodes", "/api/v1/pods", "/apis/policy/v1/poddisruptionbudgets"


def node(name: str) -> dict:
    amounts = {"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "8"}
    return thing(name, status={"allocatable": amounts, "capacity": amounts})


def pod(name: str, on: str | None = None) -> dict:
    containers = [{"name": "c", "resources": {"requests": {"nvidia.com/gpu": "1"}}}]
    spec = {"containers": containers} | ({"nodeName": on} if on else {})
    return thing(name, "ml", spec=spec, status={"phase": "Running" if on else "Pending"})


@pytest.fixture
def api() -> Iterator[FakeApi]:
    fake = FakeApi()
    fake.lists[NODES] = [node("n0"), node("n1")]
    fake.lists[PODS] = [pod(f"p{i}", "n0" if i < 3 else None) for i in range(7)]
    with serving(fake):
        yield fake


@pytest.fixture
def config(api: FakeApi, tmp_path: Path) -> Path:
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(api.kubeconfig()))
    return path


def fails(config: Path, words: str, **options: Any) -> None:
    """No snapshot can be taken, and the error has these words."""
    with pytest.raises(gs.BackendError, match=naming(words)):
        gs.kubernetes.snapshot(kubeconfig=config, **options)


def test_all_pages_of_all_kinds_become_one_list(api: FakeApi, config: Path) -> None:
    api.lists[BUDGETS] = [thing("b", "ml", spec={"minAvailable": 1}, status={"disruptionsAllowed": 0})]
    taken = gs.kubernetes.snapshot(kubeconfig=config, page_size=3)
    assert [(r.resource, r.version, r.count, r.pages, r.expired) for r in taken.lists] == [
        ("nodes", "v1", 2, 1, False),
        ("pods", "v1", 7, 3, False),
        ("poddisruptionbudgets.policy", "v1", 1, 1, False),
    ]
    assert [r.resource_version for r in taken.lists] == ["100", "101", "102"]
    assert taken.changes == 0 and "they show one moment" in str(taken)
    assert {i["kind"] + " " + i["apiVersion"] for i in taken.objects["items"]} == {
        "Node v1",
        "Pod v1",
        "PodDisruptionBudget policy/v1",
    }
    assert not any("managedFields" in item["metadata"] for item in taken.objects["items"])
    cluster = gs.io.read_kubernetes(taken.objects).cluster
    assert [task.name for task in cluster.tasks] == [f"ml/p{i}" for i in range(7)]
    pages = [query for path, query, accept in api.requests if path == PODS and "Partial" not in accept]
    assert [query["limit"] for query in pages] == ["3", "3", "3"]
    assert ["continue" in query for query in pages] == [False, True, True]


def test_kinds_that_the_server_lacks_are_named_and_no_error(api: FakeApi, config: Path) -> None:
    # The group is there, but not with this resource; and a resource only in a version that is not the
    # preferred one.
    api.lists["/apis/scheduling.k8s.io/v1/priorityclasses"] = []
    api.lists["/apis/kueue.x-k8s.io/v1/topologies"] = []
    api.lists["/apis/kueue.x-k8s.io/v1beta1/workloads"] = [thing("w", "ml")]
    taken = gs.kubernetes.snapshot(kubeconfig=config)
    assert {
        "podgroups.scheduling.k8s.io",
        "workloads.scheduling.k8s.io",
        "jobsets.jobset.x-k8s.io",
        "poddisruptionbudgets.policy",
    } <= set(taken.absent)
    found = {r.resource: r for r in taken.lists}
    assert (
        found["workloads.kueue.x-k8s.io"].version == "v1beta1"
        and found["topologies.kueue.x-k8s.io"].version == "v1"
    )
    assert set(found) | set(taken.absent) == {kind.resource for kind in KINDS} and taken.forbidden == ()
    assert "Not on this server: namespaces, " in str(taken)
    assert (
        next(i["apiVersion"] for i in taken.objects["items"] if i["kind"] == "Workload")
        == "kueue.x-k8s.io/v1beta1"
    )


def test_a_forgotten_moment_is_read_again_in_one_piece(api: FakeApi, config: Path) -> None:
    api.expires_after[PODS] = 2
    taken = gs.kubernetes.snapshot(kubeconfig=config, page_size=2)
    pods = next(r for r in taken.lists if r.resource == "pods")
    assert (pods.count, pods.pages, pods.expired) == (7, 1, True)
    assert "pods: the first page expired on the server; the list was read again" in str(taken)
    names = [i["metadata"]["name"] for i in taken.objects["items"] if i["kind"] == "Pod"]
    assert names == [f"p{i}" for i in range(7)]  # none twice, though two pages had been read
    queries = [query for path, query, accept in api.requests if path == PODS and "Partial" not in accept]
    assert [("continue" in q, q.get("limit")) for q in queries] == [
        (False, "2"),
        (True, "2"),
        (True, "2"),
        (False, None),
    ]


def test_pages_of_several_moments_are_an_error(
    api: FakeApi, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = FakeApi.page

    def spoiled(self: FakeApi, path: str, query: dict[str, str], alone: bool) -> tuple[int, dict]:
        status, body = page(self, path, query, alone)
        if "continue" in query:
            body["metadata"]["resourceVersion"] = "7"
        return status, body

    monkeypatch.setattr(FakeApi, "page", spoiled)
    fails(config, "/api/v1/pods: the pages of a list have several resourceVersions", page_size=3)


def test_changes_between_lists_are_reported(api: FakeApi, config: Path) -> None:
    api.lists[BUDGETS] = []

    def meanwhile(fake: FakeApi, path: str, query: dict[str, str]) -> None:
        if path == BUDGETS and fake.before:  # nodes and pods have been read
            fake.before = None
            fake.lists[PODS][0]["metadata"]["resourceVersion"] = "2"
            fake.lists[PODS][1]["metadata"].update(uid="another", resourceVersion="3")
            del fake.lists[PODS][6]
            fake.lists[NODES].append(node("n2"))

    api.before = meanwhile
    taken = gs.kubernetes.snapshot(kubeconfig=config, page_size=4)
    nodes, pods, budgets = taken.lists
    assert (nodes.changed, nodes.created, nodes.deleted) == ((), ("n2",), ())
    assert (pods.changed, pods.created, pods.deleted) == (("ml/p0",), ("ml/p1",), ("ml/p1", "ml/p6"))
    assert budgets.changes == 0 and taken.changes == 5
    text = str(taken)
    assert mentions(text, "pods: 2 objects deleted ml/p1, ml/p6") and "they show one moment" not in text
    assert not any(i["metadata"]["name"] == "n2" for i in taken.objects["items"])


def test_forbidden_kinds_are_named_with_the_verb(api: FakeApi, config: Path) -> None:
    api.lists[BUDGETS] = []
    api.lists["/apis/batch/v1/jobs"] = []
    api.forbidden = {BUDGETS, "/apis/batch/v1/jobs"}
    with pytest.raises(gs.BackendError) as error:
        gs.kubernetes.snapshot(kubeconfig=config)
    for part in (
        "lack the verb list on poddisruptionbudgets.policy, jobs.batch,",
        "gpusched kube rbac",
        "allow_missing",
        'User "u" cannot list',
    ):
        assert part in str(error.value)
    taken = gs.kubernetes.snapshot(kubeconfig=config, allow_missing=True)
    assert taken.forbidden == ("poddisruptionbudgets.policy", "jobs.batch")
    assert mentions(str(taken), "verb list is missing: poddisruptionbudgets.policy, jobs.batch")
    api.forbidden.add(NODES)
    fails(config, "verb list on nodes, in all namespaces; `gpusched kube rbac`", allow_missing=True)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_gets_another_request(
    api: FakeApi, config: Path, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpusched.kubernetes._api.FIRST_WAIT_S", 0)
    api.failures = [(status, {"Retry-After": "0"})] * 3
    assert gs.kubernetes.snapshot(kubeconfig=config).lists[1].count == 7
    asked = [path for path, _, _ in api.requests[:4]]
    assert len(set(asked)) == 1
    api.failures = [(status, {"Retry-After": "0"})] * 100
    with pytest.raises(gs.BackendError, match="not now"):
        gs.kubernetes.snapshot(kubeconfig=config)


@pytest.mark.parametrize("status", [429, 503])
def test_a_long_retry_after_is_not_obeyed(
    api: FakeApi, config: Path, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpusched.kubernetes._api.LONGEST_WAIT_S", 0.01)
    api.failures = [(status, {"Retry-After": "100000"})] * 3
    assert gs.kubernetes.snapshot(kubeconfig=config).lists[1].count == 7


@pytest.mark.parametrize("path", ["/apis/batch/v1", "/apis/batch/v1/jobs", "/apis/batch"])
def test_kinds_whose_server_does_not_answer_are_named(
    api: FakeApi, config: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpusched.kubernetes._api.FIRST_WAIT_S", 0)
    api.lists["/apis/batch/v1/jobs"] = []
    api.broken = {path}
    fails(config, "jobs.batch does not answer --allow-missing connection refused")
    taken = gs.kubernetes.snapshot(kubeconfig=config, allow_missing=True)
    assert taken.unavailable == ("jobs.batch",)
    assert taken.to_dict()["unavailable"] == ["jobs.batch"]
    assert "Not read, since their server does not answer: jobs.batch" in str(taken)
    assert "jobs.batch" not in [read.resource for read in taken.lists]
    api.broken = {NODES}
    fails(config, f"{NODES}: error trying to reach service", allow_missing=True)


def test_contents_of_containers_are_left_out(api: FakeApi, config: Path) -> None:
    container = {
        "name": "c", "image": "i", "command": ["run", "--password=hunter2"], "args": ["hunter2"],
        "env": [{"name": "PASSWORD", "value": "hunter2"}],
        "livenessProbe": {"exec": {"command": ["check", "hunter2"]}},
        "resources": {"requests": {"nvidia.com/gpu": "1"}},
    }  # fmt: skip
    pod = {"containers": [container], "initContainers": [container], "ephemeralContainers": [container]}
    made = thing("secretive", "ml", spec=pod, status={"phase": "Pending"})
    made["metadata"]["annotations"] = {
        "kubectl.kubernetes.io/last-applied-configuration": "hunter2",
        "kept": "yes",
    }
    api.lists[PODS].append(made)
    api.lists["/apis/apps/v1/deployments"] = [thing("web", "ml", spec={"template": {"spec": pod}})]
    objects = gs.kubernetes.snapshot(kubeconfig=config).objects
    assert "hunter2" not in json.dumps(objects)
    found = next(item for item in objects["items"] if item["metadata"]["name"] == "secretive")
    assert found["metadata"]["annotations"] == {"kept": "yes"}
    assert found["spec"]["containers"] == [{k: container[k] for k in ("name", "image", "resources")}]
    assert (
        next(
            task for task in gs.io.read_kubernetes(objects).cluster.tasks if task.name == "ml/secretive"
        ).gpu_count
        == 1
    )


def test_an_unusable_server_is_reported(
    api: FakeApi, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.unauthorized = True
    with pytest.raises(gs.BackendError, match="does not accept the credentials"):
        gs.kubernetes.snapshot(kubeconfig=config)
    with pytest.raises(gs.BackendError, match="kubeconfig .*nowhere"):
        gs.kubernetes.snapshot(kubeconfig=tmp_path / "nowhere")
    with pytest.raises(gs.BackendError, match="elsewhere"):
        gs.kubernetes.snapshot(kubeconfig=config, context="elsewhere")
    with pytest.raises(gs.BackendError, match="in-cluster credentials: "):
        gs.kubernetes.snapshot(in_cluster=True)
    closed = api.kubeconfig()
    closed["clusters"][0]["cluster"]["server"] = "http://127.0.0.1:1"
    config.write_text(json.dumps(closed))
    monkeypatch.setattr("gpusched.kubernetes._api.ATTEMPTS", 1)
    fails(config, "http://127.0.0.1:1: does not answer:")


@pytest.mark.parametrize("text", ["a: [b\n c: ", "[1, 2]", "words", ""])
def test_an_invalid_kubeconfig_is_reported(text: str, config: Path) -> None:
    config.write_text(text)
    with pytest.raises(gs.BackendError, match="^kubeconfig .*kubeconfig: "):
        gs.kubernetes.snapshot(kubeconfig=config)


@pytest.mark.parametrize("server", [None, "", "10.0.0.1:6443"])
def test_a_kubeconfig_without_a_url_is_reported(server: str | None, api: FakeApi, config: Path) -> None:
    content = api.kubeconfig()
    content["clusters"][0]["cluster"] = {} if server is None else {"server": server}
    config.write_text(json.dumps(content))
    fails(config, f"server '{server or ''}'; expected a URL such as https://")


def test_a_password_in_the_url_is_not_written_down(api: FakeApi, config: Path) -> None:
    content = api.kubeconfig()
    content["clusters"][0]["cluster"]["server"] = api.url.replace("http://", "http://somebody:hunter2@")
    config.write_text(json.dumps(content))
    taken = gs.kubernetes.snapshot(kubeconfig=config)
    assert taken.server == api.url and "hunter2" not in json.dumps(taken.to_dict()) + str(taken)


def test_a_moment_that_is_forgotten_twice_ends_it(
    api: FakeApi, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A server that pages without a request for it.
    page = FakeApi.page
    monkeypatch.setattr(
        FakeApi, "page", lambda self, path, query, alone: page(self, path, {"limit": "3", **query}, alone)
    )
    api.expires_after = {PODS: 1}
    fails(config, "/api/v1/pods: The provided continue parameter is too old", page_size=3)


def test_a_right_that_is_revoked_meanwhile_is_reported(api: FakeApi, config: Path) -> None:
    api.before = lambda fake, path, query: fake.forbidden.add(PODS) if path == PODS else None
    fails(config, "/api/v1/pods: pods is forbidden")


@pytest.mark.parametrize("items", [[None], [{}], [{"metadata": None}], [{"metadata": {}}]])
def test_objects_without_names_are_reported(
    items: list, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        FakeApi, "page", lambda *_: (200, {"metadata": {"resourceVersion": "1"}, "items": items})
    )
    with pytest.raises(gs.BackendError, match="expected a list of objects with names"):
        gs.kubernetes.snapshot(kubeconfig=config)


def test_a_version_without_resources_has_none(
    api: FakeApi, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = FakeApi.answer

    def without(self: FakeApi, path: str, query: dict[str, str], accept: str) -> tuple[int, dict]:
        if path == "/apis/kai.scheduler":
            return 200, {
                "kind": "APIGroup",
                "versions": [{"version": "v1"}],
                "preferredVersion": {"version": "v1"},
            }
        return (
            (200, {"resources": None})
            if path == "/apis/kai.scheduler/v1"
            else answer(self, path, query, accept)
        )

    monkeypatch.setattr(FakeApi, "answer", without)
    assert "topologies.kai.scheduler" in gs.kubernetes.snapshot(kubeconfig=config).absent


def test_another_server_is_reported(api: FakeApi, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeApi, "answer", lambda *_: (200, []))
    fails(config, "is this an API server")


def test_options_are_checked_together() -> None:
    options = {"page_size": 0, "timeout_s": 0, "in_cluster": True, "context": "c"}
    found = problems_in(gs.kubernetes.snapshot, **options)
    assert [problem.split(":")[0] for problem in found] == ["page_size", "timeout_s", "in_cluster"]


def test_the_missing_client_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kubernetes.config", None)
    with pytest.raises(
        gs.BackendError, match=naming("needs kubernetes: pip install kubernetes (or the extra 'kubernetes'")
    ):
        gs.kubernetes.snapshot()


def test_the_package_does_not_import_the_client() -> None:
    code = "import sys, gpusched; sys.exit('kubernetes' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_kinds_are_those_of_the_reader() -> None:
    text = (SOURCES / "src/io/kubernetes/objects.hpp").read_text()
    table = re.search(r"kind_names\[\] = \{(.*?)\n\};", text, re.S)
    assert table
    assert {(kind.group, kind.kind) for kind in KINDS} == set(
        re.findall(r'\{"([^"]*)", "(\w+)", Kind::', table[1])
    )


def test_the_role_names_the_kinds_and_nothing_else() -> None:
    yaml = pytest.importorskip("yaml")  # the client stands on it
    objects = {item["kind"]: item for item in yaml.safe_load_all(gs.kubernetes.rbac())}
    assert set(objects) == {"Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding"}
    rules = objects["ClusterRole"]["rules"]
    granted = [
        (group, resource) for rule in rules for group in rule["apiGroups"] for resource in rule["resources"]
    ]
    assert sorted(granted) == sorted((kind.group, kind.plural) for kind in KINDS)
    assert all(rule["verbs"] == ["list"] for rule in rules)


def test_the_console_writes_a_cluster_and_a_report(
    api: FakeApi, config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, report = tmp_path / "cluster.json", tmp_path / "report.json"
    arguments = f"kube snapshot --kubeconfig {config} -o {out} --report {report} --evict-bare-pods".split()
    assert cli.main(arguments) == 0
    said = capsys.readouterr().out
    assert (
        "2 nodes, 16 GPUs, 7 tasks (4 pending" in said
        and "resource_version" in said
        and "Not in the input" in said
    )
    assert (
        gs.Cluster.from_json(out)
        == gs.io.read_kubernetes(
            gs.kubernetes.snapshot(kubeconfig=config).objects, evict_bare_pods=True
        ).cluster
    )
    told = json.loads(report.read_text())
    assert told["lists"][1]["resource"] == "pods" and told["rows"] and told["absent"]


def test_the_console_writes_documents_that_import_reads(
    api: FakeApi, config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw, out = tmp_path / "all.json", tmp_path / "cluster.json"
    assert cli.main(["kube", "snapshot", "--kubeconfig", str(config), "--raw", "-o", str(raw)]) == 0
    assert cli.main(["import", "kubernetes", str(raw), "-o", str(out)]) == 0
    assert len(gs.Cluster.from_json(out).tasks) == 7
    assert "(4 pending" in capsys.readouterr().out


def test_the_console_reports_mistakes(
    api: FakeApi, config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["kube", "snapshot", "--kubeconfig", str(config), "-o", str(tmp_path / "c.json")]
    assert cli.main([*arguments, "--page-size", "0"]) == 2
    assert mentions(capsys.readouterr().err, "gpusched: --page-size: 0; expected 1 to 10000")
    api.forbidden = {PODS}
    assert cli.main(arguments) == 2
    assert "lack the verb list on pods" in capsys.readouterr().err
    assert not (tmp_path / "c.json").exists()


def test_the_console_prints_the_role(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["kube", "rbac"]) == 0
    assert capsys.readouterr().out == gs.kubernetes.rbac()
