"""The kinds of objects that a snapshot holds: those that `read_kubernetes` knows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """A kind of objects, by the names of the API."""

    group: str
    plural: str
    kind: str
    required: bool = False
    """There is no snapshot without it."""

    @property
    def resource(self) -> str:
        """As kubectl and messages of the API server write it: `pods`, `jobs.batch`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


KINDS = (
    Kind("", "nodes", "Node", required=True),
    Kind("", "pods", "Pod", required=True),
    Kind("", "namespaces", "Namespace"),
    Kind("", "persistentvolumes", "PersistentVolume"),
    Kind("", "persistentvolumeclaims", "PersistentVolumeClaim"),
    Kind("policy", "poddisruptionbudgets", "PodDisruptionBudget"),
    Kind("scheduling.k8s.io", "priorityclasses", "PriorityClass"),
    Kind("apps", "deployments", "Deployment"),
    Kind("apps", "replicasets", "ReplicaSet"),
    Kind("apps", "statefulsets", "StatefulSet"),
    Kind("apps", "daemonsets", "DaemonSet"),
    Kind("batch", "jobs", "Job"),
    Kind("resource.k8s.io", "resourceslices", "ResourceSlice"),
    Kind("resource.k8s.io", "resourceclaims", "ResourceClaim"),
    Kind("resource.k8s.io", "resourceclaimtemplates", "ResourceClaimTemplate"),
    Kind("resource.k8s.io", "deviceclasses", "DeviceClass"),
    Kind("scheduling.k8s.io", "podgroups", "PodGroup"),
    Kind("scheduling.k8s.io", "workloads", "Workload"),
    Kind("scheduling.volcano.sh", "podgroups", "PodGroup"),
    Kind("scheduling.run.ai", "podgroups", "PodGroup"),
    Kind("scheduling.x-k8s.io", "podgroups", "PodGroup"),
    Kind("scheduling.sigs.k8s.io", "podgroups", "PodGroup"),
    Kind("kueue.x-k8s.io", "workloads", "Workload"),
    Kind("kueue.x-k8s.io", "topologies", "Topology"),
    Kind("kai.scheduler", "topologies", "Topology"),
    Kind("leaderworkerset.x-k8s.io", "leaderworkersets", "LeaderWorkerSet"),
    Kind("jobset.x-k8s.io", "jobsets", "JobSet"),
)
