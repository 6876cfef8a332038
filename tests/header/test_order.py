#!/usr/bin/env python3
"""Header-only mode, any public header first in a unit: every file's text comes after the texts of all files it includes.

Bodies (impl/*.ipp) are included at the end of their header, so a circle of includes can put a body before a declaration
that it uses. This follows the include lines as the preprocessor does, for every public header; compiling them all takes
minutes (`.ci/run headers`). Runs by itself and under pytest.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Includes below a namespace's beginning are those of bodies.
LINE = re.compile(r"^\s*(#\s*include\s*<(gpusched/[^>]+)>|namespace GPUSCHED_NAMESPACE\b)", re.MULTILINE)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


class Files:
    """What each file includes before its own text, and after it (the bodies)."""

    def __init__(self, texts):
        self.before, self.after = {}, {}
        for name, text in texts.items():
            before, after, target = [], [], None
            for _, include in LINE.findall(COMMENT.sub("", text)):
                if not include:
                    target = after
                elif include in texts:
                    (before if target is None else target).append(include)
            self.before[name], self.after[name] = before, after

    def wrong_order(self, first):
        """The (file, included file) pairs where the former's text comes first, with `first` first in the unit."""
        seen, texts_done, problems = set(), set(), []

        def include(name):
            if name in seen:  # #pragma once
                return
            seen.add(name)
            for other in self.before[name]:
                include(other)
            problems.extend((name, other) for other in self.before[name] if other not in texts_done)
            texts_done.add(name)
            for body in self.after[name]:
                include(body)

        include(first)
        return problems


def library():
    return {
        file.relative_to(ROOT / "include").as_posix(): file.read_text(encoding="utf-8")
        for file in (ROOT / "include/gpusched").rglob("*pp")
    }


def test_a_circle_is_found():
    texts = {
        "gpusched/a.hpp": "#include <gpusched/b.hpp>\n",
        "gpusched/b.hpp": "namespace GPUSCHED_NAMESPACE {}\n#ifdef GPUSCHED_HEADER_ONLY\n#include <gpusched/b.ipp>\n#endif\n",
        "gpusched/b.ipp": "#include <gpusched/a.hpp>\n",
    }
    assert Files(texts).wrong_order("gpusched/a.hpp") == [("gpusched/b.ipp", "gpusched/a.hpp")]
    assert Files(texts).wrong_order("gpusched/b.hpp") == []


def problems_of(texts):
    files = Files(texts)
    public = sorted(f for f in texts if f.endswith(".hpp") and "/detail/" not in f)
    return len(public), [
        f"<{first}> first: {file} comes before <{other}>, which it includes"
        for first in public
        for file, other in files.wrong_order(first)
    ]


def test_every_public_header_may_come_first():
    count, problems = problems_of(library())
    assert count > 0 and not problems, "\n" + "\n".join(problems)


if __name__ == "__main__":
    test_a_circle_is_found()
    number, found = problems_of(library())
    print("\n".join(found))
    print(f"{number} public headers, {len(found)} wrong orders")
    sys.exit(1 if found else 0)
