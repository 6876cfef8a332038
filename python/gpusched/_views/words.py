"""Numbers in sentences."""

from __future__ import annotations

from typing import Any


def counted(count: Any, one: str, several: str | None = None) -> str:
    """A number with its noun: `1 node`, `2,000 nodes`."""
    number = int(count)
    return f"{number:,} {one if number == 1 else several or one + 's'}"
