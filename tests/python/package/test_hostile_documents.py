# SPDX-License-Identifier: Apache-2.0
"""Documents in which a value has another type: accepted, or refused by the library's own errors."""

from __future__ import annotations

import functools
import gzip
import itertools
import json
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gpusched as gs
import pytest
from clusters import tiny_document
from schemas import cases

OTHERS: tuple[Any, ...] = (None, True, -1, 2**63, 1.5, "", "x", [], [0], {}, {"a": 0}, [[]], "\ud800")

DEVICE = "A100-80GB"
T1 = {"name": "T1", "protected": True, "start": {"profile": "2g", "slice": 2, "cpus": "0-1"}}
T3 = {"name": "T3", "gpu": 0, "client_of": "T1"}
CONTROL: dict[str, Any] = {
    "format": "gpusched.control",
    "version": 1,
    "host": {"tenants": [T1, T3], "gpus": [{"device": DEVICE}], "roots": [{}], "core_numa": [0, 0]},
    "flags": {"mig": False},
    "options": {"dwell": 64, "quota_levels": []},
    "live": {
        "mig": "none",
        "journal": "j",
        "pci": [],
        "tenants": {
            "T1": {"latency": {"file": "a"}, "cgroup": "x", "disks": ["259:0"]},
            "T3": {"latency": {"prometheus": "b", "metric": "c", "labels": {"d": "e"}}},
        },
        "admission": {"capacity": 1, "start": ["true"]},
    },
}
MEASURED = {"model": "m", "deployment": "A40 1x4", "workload": "chat"}
MEASURED |= {"requests_per_s": 1, "ttft_s": 0.5}
CHAT = {"input": 9, "output": 5, "rate": 0.1, "targets": {"tpot_p99_s": 1}}
REQUEST: dict[str, Any] = {
    "format": "gpusched.serving-request",
    "version": 2,
    "gpus": {"A40": {"available": 4, "price": 1, "spot_price": 0.3, "spot_available": 2}},
    "models": {"m": {"type": "Llama-3-70B", "bytes_per_weight": 1, "workloads": {"chat": CHAT}}},
    "targets": {"ttft_p90_s": 9},
    "measured": [MEASURED],
}
STAGES = [{"gpu": "A40", "degree": 4, "layers": 80}]
SERVES = {"share": {"chat": 1.0}, "requests_per_s": {"chat": 1.0}}
RUNNING = [{"model": "m", "deployment": "A40 1x4", "count": 1, "stages": STAGES, **SERVES}]
JOBS = [{"name": "a", "pods": [{"count": 2, "gpu_count": 1, "cpu_milli": 1, "memory_mib": 1}]}]
KUBERNETES_NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "a", "labels": {"x": "y"}},
    "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
    "status": {
        "allocatable": {"cpu": "8", "memory": "1Gi", "nvidia.com/gpu": "8"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}
KUBERNETES_POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "d", "ownerReferences": [{"kind": "Job", "name": "j"}]},
    "spec": {
        "nodeName": "a",
        "containers": [{"name": "c", "resources": {"requests": {"nvidia.com/gpu": "1"}}}],
        "tolerations": [{"key": "k", "operator": "Exists"}],
    },
    "status": {"phase": "Running"},
}
KUBERNETES = {"apiVersion": "v1", "kind": "List", "items": [KUBERNETES_NODE, KUBERNETES_POD]}
SLURM_JOB = {
    "job_id": 1,
    "job_state": ["RUNNING"],
    "nodes": "a",
    "partition": "p",
    "priority": {"set": True, "infinite": False, "number": 5},
    "tres_alloc_str": "cpu=1,gres/gpu=1",
}
SLURM: dict[str, Any] = {
    "meta": {},
    "nodes": [{"name": "a", "cpus": 8, "gres": "gpu:2", "state": ["IDLE"], "partitions": ["p"]}],
    "jobs": [SLURM_JOB],
    "partitions": [{"name": "p", "nodes": {"configured": "a"}}],
}


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values within a document."""
    yield at
    children: Any = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        children = enumerate(value)
    for key, child in children:
        yield from places(child, (*at, key))


def changed(document: Any, at: tuple[Any, ...], value: Any) -> Any:
    """The document with another value at a path."""
    if not at:
        return value
    copy = document.copy()
    copy[at[0]] = changed(document[at[0]], at[1:], value)
    return copy


def stored(file: str) -> list[Any]:
    return [json.loads(text) for _, text, _ in cases(file)]


@functools.cache
def cluster() -> gs.Cluster:
    return gs.Cluster.from_json(tiny_document())


def of_file(read: Callable[[str], Any]) -> Callable[[Any, Path], Any]:
    """Reads a document from a file, because the function takes paths only."""

    def call(document: Any, folder: Path) -> Any:
        path = folder / "document.json"
        path.write_text(json.dumps(document))
        return read(str(path))

    return call


READERS: dict[str, tuple[list[Any], Callable[[Any, Path], Any]]] = {
    "cluster": (stored("cluster_valid.txt"), lambda d, _: gs.Cluster.from_json(d)),
    "plan": (stored("plan_valid.txt"), lambda d, _: gs.Plan.from_json(d)),
    "control": ([CONTROL], lambda d, _: gs.control.Controller(d)),
    "host": ([CONTROL], lambda d, _: gs.host._config.read_live(d)),
    "request": ([REQUEST], lambda d, _: gs.serving.calibrate(d)),
    "running": ([RUNNING], lambda d, _: gs.serving.simulate_latency(REQUEST, d, requests=100)),
    "jobs": ([JOBS], lambda d, _: gs.allocate_many(cluster(), d)),
    "kubernetes": ([KUBERNETES], of_file(lambda path: gs.io.read_kubernetes(path))),
    "slurm": ([SLURM], of_file(lambda path: gs.io.read_slurm(path))),
}


@pytest.mark.parametrize("name", READERS)
def test_a_value_of_another_type_is_accepted_or_refused(name: str, tmp_path: Path) -> None:
    documents, read = READERS[name]
    for document, value in itertools.product(documents, OTHERS):
        read(document, tmp_path)
        for at in places(document):
            try:
                read(changed(document, at, value), tmp_path)
            except (gs.InvalidInput, gs.BackendError) as error:
                assert str(error), (at, value)


def test_archives_that_unpack_to_far_more_are_refused(tmp_path: Path) -> None:
    bomb, archive = tmp_path / "dump.json.gz", tmp_path / "snapshot.zip"
    bomb.write_bytes(gzip.compress(b" " * (1 << 26)))
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("snapshot.json", b" " * (1 << 26))
    for read, path in ((gs.io.read_kubernetes, bomb), (gs.io.read_kai_snapshot, archive)):
        with pytest.raises(gs.InvalidInput, match=r"expected at most \d+ bytes unpacked"):
            read(path)
    bomb.write_bytes(gzip.compress(json.dumps(KUBERNETES).encode()))
    assert len(gs.io.read_kubernetes(bomb).cluster.nodes) == 1


PEAK = """
import resource, sys
import gpusched as gs
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = peak()
try:
    getattr(gs.io, sys.argv[1])(sys.argv[2])
except gs.InvalidInput as error:
    print(error, file=sys.stderr)
print((peak() - before) / 1024)
"""
SOCKETS = [{"id": f"s{i}", "type": "Socket"} for i in range(3000)]
JOBS_ON_ALL_NODES = "".join(f"NodeName=a{i}\n" for i in range(1000)) + "".join(
    f"JobId={i} JobState=PENDING NumNodes=1000\n" for i in range(1000)
)


def kubernetes_object(kind: str, name: str, **parts: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "d", **parts.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **parts}


def many_pods(*others: dict[str, Any], count: int = 3000, **spec: Any) -> str:
    """A list with a node, other objects, and pods that all refer to them."""
    pods = [kubernetes_object("Pod", f"p{i}", spec=spec) for i in range(count)]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [KUBERNETES_NODE, *others, *pods]})


def volume(expressions: int = 0, zones: int = 0) -> list[dict[str, Any]]:
    """A claim and its volume, with large requirements on nodes."""
    matches = [{"key": f"k{i}", "operator": "DoesNotExist"} for i in range(expressions)]
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": matches}]}} if matches else {}
    labels = {"topology.kubernetes.io/zone": "__".join(f"z{i}" for i in range(zones))} if zones else {}
    claim = kubernetes_object("PersistentVolumeClaim", "c", spec={"volumeName": "v"})
    spec = {"nodeAffinity": affinity}
    pv = kubernetes_object("PersistentVolume", "v", metadata={"labels": labels}, spec=spec)
    return [claim, pv]


def pods_with_a_volume(terms: int = 0, count: int = 3000, **size: int) -> str:
    term = {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term] * terms}}
    affinity = {"nodeAffinity": required} if terms else {}
    uses = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    return many_pods(*volume(**size), count=count, volumes=uses, affinity=affinity)


def pods_with_a_claim_template() -> str:
    requests = [{"name": f"r{i}", "exactly": {"deviceClassName": f"gpu.a{i}"}} for i in range(3000)]
    template = kubernetes_object(
        "ResourceClaimTemplate", "t", spec={"spec": {"devices": {"requests": requests}}}
    )
    template["apiVersion"] = "resource.k8s.io/v1"
    return many_pods(template, resourceClaims=[{"name": "c", "resourceClaimTemplateName": "t"}])


def pods_apart_in_all_namespaces() -> str:
    spaces = [kubernetes_object("Namespace", f"{i:04}{'n' * 200}") for i in range(2000)]
    term = {
        "labelSelector": {"matchLabels": {"a": "b"}},
        "namespaceSelector": {"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]},
        "topologyKey": "zone",
    }
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return many_pods(*spaces, affinity={"podAntiAffinity": required})


def pods_for_cards(product: str) -> str:
    """Pods that accept the cards of all nodes, of which each has another product."""
    nodes = [
        kubernetes_object(
            "Node",
            f"n{i}",
            metadata={"labels": {"nvidia.com/gpu.product": f"{product}{i}"}},
            status={"allocatable": {"nvidia.com/gpu": "1"} if i > 0 else {"amd.com/gpu": "1"}},
        )
        for i in range(3000)
    ]
    containers = [{"name": "c", "resources": {"requests": {"nvidia.com/gpu": "1"}}}]
    return many_pods(*nodes, containers=containers)


def pods_with_host_ports() -> str:
    ports = [[{"hostPort": 80, "hostIP": f"10.0.{i // 250}.{i % 250}"}] for i in range(2000)]
    pods = [
        kubernetes_object("Pod", f"p{i}", spec={"containers": [{"name": "c", "ports": port}]})
        for i, port in enumerate(ports + [[{"hostPort": 80}]] * 2000)
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [KUBERNETES_NODE, *pods]})


def pods_spread_by_selectors() -> str:
    """Every pod selects all pods, in words of its own."""
    pods = []
    for i in range(1500):
        selector = {"matchExpressions": [{"key": f"k{i}", "operator": "DoesNotExist"}]}
        spread = {"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
        pods.append(kubernetes_object("Pod", f"p{i}", spec={"topologySpreadConstraints": [spread]}))
    nodes = [kubernetes_object("Node", f"n{i}", metadata={"labels": {"zone": f"z{i}"}}) for i in range(2000)]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [*nodes, *pods]})


def pods_apart_at_many_levels() -> str:
    pods = []
    for i in range(3000):
        term = {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": f"k{i}"}
        affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        metadata = {"labels": {"a": "b"}}
        pods.append(kubernetes_object("Pod", f"p{i}", metadata=metadata, spec={"affinity": affinity}))
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [KUBERNETES_NODE, *pods]})


AMPLIFYING = {
    "a range of ranges": ("read_slurm_topology", "SwitchName=d Nodes=n[0-99999][0-9]"),
    "a range": ("read_slurm_topology", "SwitchName=d Nodes=n[0-99999]"),
    "a long switch": ("read_slurm_topology", f"SwitchName={'s' * 10_000} Nodes=n[0-99999]"),
    "long hosts": ("read_slurm_topology", f"SwitchName=s Nodes={'n' * 1000}[0-49999]"),
    "jobs": ("read_slurm", JOBS_ON_ALL_NODES),
    "a partition": ("read_slurm", "NodeName=a\nPartitionName=p Nodes=n[0-999999]\n"),
    "a partition within the limit": ("read_slurm", "NodeName=a\nPartitionName=p Nodes=n[0-599999]\n"),
    "nodes of a job": ("read_slurm", "NodeName=a\nJobId=1 JobState=RUNNING NodeList=n[0-999999]\n"),
    "a long type of cards": (
        "read_slurm",
        f"NodeName=a\nJobId=1 JobState=RUNNING NodeList=n[0-9999] AllocTRES=gres/gpu:{'t' * 100_000}=9999\n",
    ),
    "sockets": ("read_flextopo", json.dumps({"kind": "FlexTopo", "spec": {"nodes": SOCKETS}})),
    "a claim template": ("read_kubernetes", pods_with_a_claim_template()),
    "a volume": ("read_kubernetes", pods_with_a_volume(expressions=3000)),
    "zones of a volume": ("read_kubernetes", pods_with_a_volume(zones=20_000)),
    "a volume and many terms": ("read_kubernetes", pods_with_a_volume(256, 1, expressions=30_000)),
    "namespaces": ("read_kubernetes", pods_apart_in_all_namespaces()),
    "models of cards": ("read_kubernetes", pods_for_cards("M")),
    "profiles of cards": ("read_kubernetes", pods_for_cards("M-MIG-")),
    "host ports": ("read_kubernetes", pods_with_host_ports()),
    "selectors": ("read_kubernetes", pods_spread_by_selectors()),
    "levels": ("read_kubernetes", pods_apart_at_many_levels()),
}


@pytest.mark.parametrize(("reader", "text"), AMPLIFYING.values(), ids=AMPLIFYING)
def test_memory_of_readers_is_bounded(reader: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text(text)
    command = [sys.executable, "-c", PEAK, reader, str(path)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    assert float(run.stdout) < 100 + 200 * len(text) / 2**20, run.stderr


SPOT = """
import resource
import gpusched as gs
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
node = {"name": "n", "gpu_count": 8, "cpu_milli": 8, "memory_mib": 8}
job = {"name": "j", "priority_class": "HP", "gpu_count": 1, "cpu_milli": 1, "memory_mib": 1, "pods": 10_000}
trace = gs.sim.SpotTrace([node], [job | {"node_affinity": [{}] * 250}])
before = peak()
gs.sim.replay_spot(trace)
print((peak() - before) / 1024)
"""


def test_memory_of_a_replay_does_not_grow_with_what_the_pods_of_a_job_share() -> None:
    run = subprocess.run([sys.executable, "-c", SPOT], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    assert float(run.stdout) < 60


SERVING = """
import json, resource, sys
import gpusched as gs
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
gpus = {f"G{i}": {"type": "H100", "available": 16, "price": 1 + i / 100} for i in range(int(sys.argv[1]))}
chat = {"input": 496, "output": 510, **json.loads(sys.argv[2])}
request = {"gpus": gpus, "models": {"m": {"type": "Llama-3-70B", "workloads": {"chat": chat}}}}
request["budget"] = 100
before = peak()
try:
    gs.serving.plan_serving(request, time_limit=5, **json.loads(sys.argv[3]))
except gs.InvalidInput as error:
    print(error, file=sys.stderr)
print((peak() - before) / 1024)
"""
MIXED = {"max_types": 3, "mixed_degrees": True}


@pytest.mark.parametrize(
    ("types", "requests", "options", "most_mib", "refused"),
    [
        (100, {"rate": 6.5}, {"ttft_p90_s": 5}, 60, False),
        (20, {"requests": 1000}, {}, 100, False),
        (40, {"requests": 1000}, {}, 100, True),
        (100, {"requests": 1000}, {}, 100, True),
        (100, {"requests": 1000}, {"deployments": {"max_types": 1}}, 100, False),
        (12, {"requests": 1000}, {"deployments": MIXED}, 100, True),
        (12, {"rate": 6.5}, {"deployments": MIXED}, 100, False),
    ],
)
def test_memory_of_planning_does_not_grow_with_combinations_of_gpu_types(
    types: int, requests: dict[str, float], options: dict[str, Any], most_mib: float, refused: bool
) -> None:
    if not gs.milp.available_solvers():
        pytest.skip("no solver")
    command = [sys.executable, "-c", SERVING, str(types), json.dumps(requests), json.dumps(options)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    assert float(run.stdout) < most_mib
    assert ("deployments: more than 50000" in run.stderr and "max_types" in run.stderr) == refused, run.stderr


def test_the_time_of_bad_objects_grows_with_their_number(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps({"rawObjects": {"pods": [{}] * 50_000}}))
    before = time.process_time()
    with pytest.raises(gs.InvalidInput):
        gs.io.read_kai_snapshot(path)
    assert time.process_time() - before < 4  # 10 s in quadratic time


def test_planning_ends_within_its_time_limit() -> None:
    """Without a plan, it also searches for the limits that prevent one."""
    if not gs.milp.available_solvers():
        pytest.skip("no solver")
    chat = {"input": 496, "output": 510, "rate": 6.5}
    workloads = {"chat": chat, "code": {"input": 1500, "output": 30, "rate": 2}}
    request = {
        "gpus": {"A40": {"available": 16, "minimum": 4, "spot_price": 0.3, "spot_available": 32}},
        "models": {"m": {"type": "Llama-3-70B", "bytes_per_weight": 1, "workloads": workloads}},
        "targets": {"ttft_p90_s": 1, "tpot_p99_s": 0.1},
        "measured": [MEASURED],
    }
    start = time.process_time()
    whole = gs.serving.plan_serving(request)
    unlimited = time.process_time() - start
    limit = unlimited / 6
    start = time.process_time()
    plan = gs.serving.plan_serving(request, time_limit=limit)
    assert time.process_time() - start < max(unlimited / 2, 0.3)
    assert whole.status == "infeasible" and plan.status in ("infeasible", "time_limit")
    assert plan.binding or plan.status == "time_limit"
