"""Admits a job at the lowest cost by placing, moving, evicting and borrowing."""

from ._core.admission import Admission, admit, make_room

__all__ = ["Admission", "admit", "make_room"]
