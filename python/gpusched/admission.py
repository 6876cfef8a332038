"""One decision that lets a job in at the least cost: place, move, evict, borrow."""

from ._core.admission import Admission, admit, make_room

__all__ = ["Admission", "admit", "make_room"]
