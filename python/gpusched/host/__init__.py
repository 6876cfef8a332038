# SPDX-License-Identifier: Apache-2.0
"""The tail-latency controller on this machine, which reads its signals and acts on its GPUs. Experimental."""

from ._controller import Controller
from ._discover import Gpu, Machine, discover
from ._failures import UnknownState
from ._journal import Journal, Lease, TenantEntry
from ._places import Configuration, Instance
from ._service import JsonFormatter

__all__ = [
    "Configuration",
    "Controller",
    "Gpu",
    "Instance",
    "Journal",
    "JsonFormatter",
    "Lease",
    "Machine",
    "TenantEntry",
    "UnknownState",
    "discover",
]

# Pickles name the module of a class, which must be one that stays.
for _name in __all__:
    globals()[_name].__module__ = __name__
