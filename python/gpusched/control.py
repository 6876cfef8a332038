"""The tail-latency controller of one host: MIG layouts, decisions window by window, and their audit log."""

from ._core.control import (
    Action,
    AuditReplay,
    Controller,
    Event,
    LiveController,
    MigLayout,
    MigProfile,
    mig_devices,
    mig_layout,
    replay_audit,
    variant_flags,
)

__all__ = [
    "Action",
    "AuditReplay",
    "Controller",
    "Event",
    "LiveController",
    "MigLayout",
    "MigProfile",
    "mig_devices",
    "mig_layout",
    "replay_audit",
    "variant_flags",
]
