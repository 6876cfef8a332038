# SPDX-License-Identifier: Apache-2.0
"""Nodes and pods as the API of Kubernetes has them."""


def node(name, gpus=8, ready=True, devices=None, **spec):
    amounts = {"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": str(gpus), **(devices or {})}
    conditions = {"conditions": [{"type": "Ready", "status": "True"}]} if ready else {}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"nvidia.com/gpu.product": "H100"}},
        "spec": spec,
        "status": {"allocatable": amounts, "capacity": amounts, **conditions},
    }


def pod(name, gpus, on=None, owner=None, labels=None, **more):
    metadata = {"name": name, "namespace": "ml", "labels": labels or {}}
    if owner is not None:
        metadata["ownerReferences"] = [{"kind": owner, "name": f"of-{name}", "controller": True}]
    spec = {
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "8", "nvidia.com/gpu": str(gpus)}}}],
        **more,
    }
    if on is not None:
        spec["nodeName"] = on
    status = {"phase": "Running" if on else "Pending"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def a_list(*items):
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}
