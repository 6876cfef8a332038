"""Kubernetes clusters through their API. Needs the official client, the extra `kubernetes`."""

from __future__ import annotations

import importlib.resources

from ._snapshot import ListRead, Snapshot, snapshot

__all__ = ["ListRead", "Snapshot", "rbac", "snapshot"]

ListRead.__module__ = Snapshot.__module__ = snapshot.__module__ = __name__


def rbac() -> str:
    """The least rights that `snapshot` needs, as objects for `kubectl apply`: a service account, a role and a binding."""
    return importlib.resources.files(__package__).joinpath("rbac.yaml").read_text(encoding="utf-8")
