"""What containers run and with which values is nobody's business who asks where pods go; it may hold passwords."""

from __future__ import annotations

from typing import Any

CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
WHAT_RUNS = ("command", "args", "env", "lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
"""Of a container. Placement depends on none of it."""
COPY_OF_ALL = "kubectl.kubernetes.io/last-applied-configuration"
"""An annotation."""


def without_private(value: Any) -> Any:
    """An object of Kubernetes without what its containers run, at any depth: pods, templates of owners."""
    if isinstance(value, list):
        return [without_private(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept: dict[Any, Any] = {}
    for key, item in value.items():
        if key in CONTAINERS and isinstance(item, list):
            kept[key] = [
                {k: v for k, v in container.items() if k not in WHAT_RUNS} if isinstance(container, dict) else container
                for container in item
            ]
        elif key == "annotations" and isinstance(item, dict):
            kept[key] = {k: v for k, v in item.items() if k != COPY_OF_ALL}
        else:
            kept[key] = without_private(item)
    return kept
