# SPDX-License-Identifier: Apache-2.0
"""Access to Kubernetes clusters through their API server.

Needs the extra `kubernetes` (the official client).
"""

from __future__ import annotations

import importlib.resources

from ._snapshot import ListRead, Snapshot, snapshot

__all__ = ["ListRead", "Snapshot", "rbac", "snapshot"]

ListRead.__module__ = Snapshot.__module__ = snapshot.__module__ = __name__


def rbac() -> str:
    """A service account, role and binding with the minimal permissions of `snapshot`, for `kubectl apply`."""
    return importlib.resources.files(__package__).joinpath("rbac.yaml").read_text(encoding="utf-8")
