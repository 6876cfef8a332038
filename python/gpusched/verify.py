"""Checks that share no code with what they check."""

from ._core.verify import Report, plan

__all__ = ["Report", "plan"]
