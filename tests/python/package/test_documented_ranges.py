# SPDX-License-Identifier: Apache-2.0
"""The documented range of a keyword is the range that the library checks."""

from __future__ import annotations

import re

from gpusched import _core


def numbers_of(text: str) -> list[float]:
    """The ends of a range as documentation writes it: `0 .. 10^9`, `>= 1`, `above 0, at most 10,000`."""
    number = r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?(?:\^\d+)?"
    from_to = rf"({number}) (?:\.\.|to) ({number})"
    from_on = rf"(?:>=?|at least|above|more than) ({number})(?:(?:,| and) at most ({number}))?"
    found = re.search(f"{from_to}|{from_on}", text)
    assert found is not None, text
    return [
        float(base.replace(",", ""))
        if not power
        else (-1 if base[0] == "-" else 1) * float(base.lstrip("-")) ** int(power)
        for end in found.groups()
        if end is not None
        for base, _, power in [end.partition("^")]
    ]


def test_documentation_gives_the_ranges_that_are_checked() -> None:
    ranges = {
        (function, keyword["name"]): (keyword["text"], keyword["range"])
        for function, keywords in _core.keywords.items()
        for keyword in keywords
        if keyword["range"]
    }
    assert len(ranges) > 80
    for name, (text, checked) in ranges.items():
        documented, ends = numbers_of(text), numbers_of(checked)
        assert documented == ends[: len(documented)], (name, text, checked)
