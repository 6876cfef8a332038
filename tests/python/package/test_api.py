"""The names and signatures that notebooks, documents and other programs rely on."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import gpusched as gs
import pytest

NAMES = """
Cluster.from_json Cluster.to_json Cluster.copy Cluster.nodes Cluster.tasks Cluster.to_pandas Cluster.to_arrow
Plan.to_pandas Plan.to_arrow topology.NetworkTree.to_networkx topology.HardwareGraph.to_networkx
Plan.from_json Plan.to_json Plan.moves Plan.waves Plan.vacated_nodes Plan.stats Plan.bound Plan.stop_reason
InvalidInput BackendError apply consolidate place allocate allocate_many admit
admission.Admission.admitted admission.Admission.plan admission.Admission.cost admission.Admission.cost_parts admission.Admission.bound
admission.Admission.proven admission.Admission.moved admission.Admission.evicted admission.Admission.stop_reason make_room
allocation.Allocation.placed allocation.Allocation.pods allocation.Allocation.per_domain
allocation.Allocation.entropy allocation.Allocation.reason allocation.with_job allocation.with_task allocation.to_plan
sim.generate_cluster sim.replay sim.Trace
sim.ReplayResult.cluster sim.ReplayResult.unplaced sim.ReplayResult.timeline
io.read_openb io.anonymize
fragmentation.report fragmentation.switch_slots fragmentation.server_ratios fragmentation.fgd preemption.gang_lost_work
fragmentation.Report.to_pandas fragmentation.Report.plot
consolidation.consolidate consolidation.bound consolidation.explain consolidation.value_report
consolidation.explain_move consolidation.MoveExplanation.victims consolidation.order_into_waves consolidation.OrderedMoves.dropped
topology.NetworkTree topology.to_dot topology.HardwareGraph topology.hardware_to_dot
topology.RackPreset topology.rack_preset topology.add_racks
topology.HardwareGraph.preset topology.HardwareGraph.distance topology.HardwareGraph.bottleneck_bandwidth
topology.HardwareGraph.best_gpus topology.HardwareGraph.socket_of topology.HardwareGraph.numa_node_of
topology.HardwareGraph.pcie_root_of
io.read_hardware io.read_nvidia_smi_topo io.read_nccl_topology io.read_hwloc io.read_flextopo io.HardwareReading
io.read_slurm io.read_kai_snapshot io.read_slurm_topology io.read_kubernetes_topology io.NetworkReading io.network_tree io.set_network
io.reads_xml io.reads_yaml
io.read_node_resource_topology io.machine_of io.NodeResources.numa_nodes io.NumaResources.resources
io.ResourceAmount.available_milli
preemption.preempt_gang preemption.explain_gang preemption.GangDecision.lost_gangs preemption.GangDecision.victims
preemption.StandbyLease.lend preemption.StandbyLease.borrow preemption.StandbyLease.give_back
preemption.StandbyLease.resume preemption.StandbyLease.advance preemption.StandbyLease.state
preemption.StandbyLease.lent preemption.EvictionModel.draw preemption.EvictionTimeline.killed
preemption.Borrower.eviction
sim.resample model.hardware_preset
control.Controller.step control.Controller.state control.Controller.audit_log control.mig_layout control.replay_audit
host.Controller.start host.Controller.step host.Controller.run host.Controller.status host.Controller.release
host.Controller.config host.discover host.Journal.save
control.MigLayout.profiles control.MigLayout.count_layouts control.mig_devices control.variant_flags
sim.simulate_host sim.record_host sim.read_llm_trace sim.kingman_wait sim.is_stable
sim.HostResult.violation_s sim.HostResult.excess_ms sim.HostResult.slice_s sim.HostResult.decoded
sim.HostResult.miss_rate sim.HostResult.miss_rate_completed sim.HostResult.p95_ms sim.HostResult.p99_ms
sim.HostResult.p999_ms sim.HostResult.throughput sim.HostResult.system_throughput
sim.HostResult.structural_actions_per_hour
fragmentation.entropy fragmentation.job_entropy
serving.plan_serving serving.replan serving.estimate_throughput serving.enumerate_deployments serving.gpu_type
serving.gpu_catalogue serving.paper_gpus serving.paper_gpus_dense serving.language_model serving.layer_seconds
serving.greedy_plan serving.closed_form_bound milp.packing_model milp.PackingModel.encode serving.sweep_budgets serving.sweep_to_dict
serving.plan_to_dict serving.read_layer_profile serving.simulate_latency serving.LatencyResult.percentile
serving.ServingPlan.makespan serving.ServingPlan.replicas serving.ReplanResult.starts
sim.SpotTrace sim.SpotTrace.to_pandas sim.generate_spot_trace sim.replay_spot sim.Spread.mean
sim.SpotReplayResult.jobs sim.SpotReplayResult.timeline sim.SpotReplayResult.lp_completion_s
verify.plan verify.Report.ok verify.Report.violations verify.Report.vacated_nodes
""".split()

SIGNATURES: dict[str, dict[str, Any]] = {
    "sim.generate_cluster": {"preset": "asi", "seed": 0, "layout": "random", "load": 1.0, "cpu_tight": False},
    "io.read_openb": {"gpu_nodes_only": True},
    "sim.replay": {
        "placement": "least_allocated",
        "until": None,
        "ignore_departures": False,
        "resample_to": None,
        "shuffle": False,
        "seed": 0,
    },
    "sim.replay_spot": {
        "rankers": ["packing", "homogeneous", "eviction_history"],
        "victims": "spot",
        "spot_jobs": True,
        "seed": 0,
    },
    "fragmentation.report": {"max_gpus_per_node": None, "by": None, "include_cordoned": False, "accounting": "all"},
    "fragmentation.switch_slots": {"gpus": 128, "cores_per_gpu": 12},
    "consolidate": {
        "preset": "best",
        "partition_size": 500,
        "depth": 3,
        "rounds": 5,
        "seed": 0,
        "threads": 0,
        "time_limit": None,
        "max_moves": None,
        "objective": "gpus",
        "progress": None,
    },
    "sim.simulate_host": {"variant": "full", "duration_s": 3600.0, "scenario": "table3", "overrides": None},
    "preempt": {"policy": "imp", "qos": None, "alpha": 0.5, "now": None},
    "allocate": {"policy": "exact", "level": None, "mode": None},
    "allocate_many": {"policy": "joint", "time_limit": None},
    "place": {"rankers": ["packing", "homogeneous", "eviction_history"]},
}


def look_up(path: str) -> Any:
    thing: Any = gs
    for name in path.split("."):
        thing = getattr(thing, name)
    return thing


@pytest.mark.parametrize("path", NAMES)
def test_names_exist_and_are_documented(path: str) -> None:
    thing = look_up(path)
    assert inspect.getdoc(thing), path


@pytest.mark.parametrize("path", SIGNATURES)
def test_signatures_and_defaults(path: str) -> None:
    parameters = inspect.signature(look_up(path)).parameters
    for name, default in SIGNATURES[path].items():
        assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY, name
        assert parameters[name].default == default, name


def public_functions() -> list[str]:
    modules = (
        "sim",
        "io",
        "fragmentation",
        "consolidation",
        "verify",
        "allocation",
        "model",
        "preemption",
        "admission",
        "serving",
        "topology",
        "control",
        "host",
        "kubernetes",
    )
    return [f"{m}.{n}" for m in modules for n in look_up(m).__all__ if inspect.isroutine(look_up(f"{m}.{n}"))]


@pytest.mark.parametrize("path", public_functions())
def test_functions_say_where_they_live_and_document_their_options(path: str) -> None:
    function = look_up(path)
    assert f"{function.__module__}.{function.__name__}" == f"gpusched.{path}"
    text = inspect.getdoc(function) or ""
    assert len(text) > 20 and "::" not in text and "@" not in text.replace("@code", "")
    keywords = [p.name for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]
    for name in keywords:
        assert name in text, name


@pytest.mark.parametrize(
    "module",
    [
        "sim",
        "io",
        "fragmentation",
        "consolidation",
        "verify",
        "allocation",
        "model",
        "preemption",
        "admission",
        "serving",
        "topology",
        "control",
        "host",
    ],
)
def test_public_names_are_complete(module: str) -> None:
    core = getattr(gs._core, module)  # type: ignore[attr-defined]
    missing = {name for name in vars(core) if not name.startswith("_")} - set(look_up(module).__all__)
    assert missing == set()


def test_classes_live_where_users_find_them() -> None:
    for module in (
        "sim",
        "io",
        "fragmentation",
        "consolidation",
        "verify",
        "model",
        "preemption",
        "admission",
        "serving",
        "topology",
        "control",
        "host",
        "kubernetes",
    ):
        for name in look_up(module).__all__:
            thing = look_up(f"{module}.{name}")
            if inspect.isclass(thing) and not thing.__module__.startswith("gpusched._"):
                assert f"{thing.__module__}.{thing.__name__}" == f"gpusched.{module}.{name}"


def test_the_stubs_match() -> None:
    pytest.importorskip("mypy")
    here = Path(__file__).resolve().parents[1]
    command = [
        sys.executable,
        "-m",
        "mypy.stubtest",
        "gpusched",
        "--allowlist",
        str(here / "stubtest_allowlist.txt"),
    ]
    command += ["--mypy-config-file", str(here.parents[1] / "pyproject.toml")]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_package_is_typed(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    source = tmp_path / "user.py"
    source.write_text(
        "import gpusched as gs\n"
        "cluster = gs.sim.generate_cluster(nodes=10)\n"
        "plan = gs.consolidate(cluster, preset='fast')\n"
        "reveal_type(plan.moves[0].task)\n"
        "gs.consolidate(cluster, preset='nonsense')\n"
    )
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(source)], capture_output=True, text=True, check=False
    )
    assert re.search(r'Revealed type is "(builtins\.)?str"', run.stdout), run.stdout
    assert "\"Literal['nonsense']\"" in run.stdout and "Found 1 error" in run.stdout, run.stdout
