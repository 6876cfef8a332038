# SPDX-License-Identifier: Apache-2.0
"""Checks of plans that share no code with the algorithms."""

from ._core.verify import Report, plan

__all__ = ["Report", "plan"]
