# SPDX-License-Identifier: Apache-2.0
"""Decisions of the tail-latency controller of one host: MIG layouts, windows, and the audit log."""

from ._core.control import *

__all__ = [
    "Action",
    "ActivityCorrelation",
    "AdmissionAnswer",
    "AdmissionPlace",
    "AdmissionQueue",
    "AuditReplay",
    "Configuration",
    "Controller",
    "Event",
    "MigLayout",
    "MigProfile",
    "Newcomer",
    "find_place",
    "mig_devices",
    "mig_layout",
    "replay_audit",
    "variant_flags",
]
