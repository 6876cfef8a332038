# SPDX-License-Identifier: Apache-2.0
"""Admits a job at the lowest cost by placing, moving, evicting and borrowing; says why a job does not run."""

from ._core.admission import Admission, Remedy, Why, WhyDomain, WhyKind, WhyRow, admit, make_room, why

__all__ = ["Admission", "Remedy", "Why", "WhyDomain", "WhyKind", "WhyRow", "admit", "make_room", "why"]
