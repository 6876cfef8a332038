#!/usr/bin/env python3
"""Includes go one way: checks the #include lines of the library against the table below.

Runs by itself (ctest does that) and under pytest.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# component -> the other components that it may include
ALLOWED = {
    "core": set(),
    "json": {"core"},
    "model": {"core"},
    "topology": {"core", "model"},
    "verify": {"core", "model"},
    "io": {"core", "json", "model", "topology"},
    "fragmentation": {"core", "model"},
    "allocation": {"core", "model", "topology", "fragmentation"},
    "consolidation": {"core", "model", "fragmentation", "allocation"},
    "preemption": {"core", "model", "topology", "allocation"},
    "admission": {"core", "model", "allocation", "consolidation", "preemption"},
    "milp": {"core", "model"},
    "serving": {"core", "json", "milp"},
    "control": {"core", "json"},
    "sim": {"core", "model", "fragmentation", "allocation", "consolidation", "preemption", "control"},
}

# Too slow to compile for the headers that every user includes.
HEAVY = re.compile(
    r"(iostream|regex|Eigen/.*|unsupported/Eigen/.*|boost/graph/.*|nlohmann/json\.hpp|csv\.h)$"
)
# The decision core of the controller does no I/O and reads no clock.
IMPURE = re.compile(
    r"(fstream|iostream|filesystem|chrono|ctime|thread|mutex|random|unistd\.h|fcntl\.h|sys/.*"
    r"|gpusched/core/(clock|file|rng)\.hpp)$"
)
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


def component_of(path):
    """The component of an included path, `gpusched/<component>/...` or `<component>/...`; None for other
    headers.
    """
    parts = path.removeprefix("gpusched/").split("/")
    return parts[0] if len(parts) > 1 and parts[0] in ALLOWED else None


def violations(root):
    found = []
    for folder in ("include/gpusched", "src"):
        for file in sorted((root / folder).rglob("*pp")):
            inside = file.relative_to(root / folder).as_posix()
            own = component_of(inside)
            if own is None:  # umbrella headers, version.cpp
                continue
            public = folder.startswith("include")
            for target in INCLUDE.findall(file.read_text(encoding="utf-8")):
                other = component_of(target)
                name = f"{folder}/{inside}"
                if public and other and not target.startswith("gpusched/"):
                    found.append(f"{name}: a public header includes the private header {target}")
                if (
                    public
                    and own in {"core", "model"}
                    and "/detail/csv" not in inside
                    and HEAVY.match(target)
                ):
                    found.append(f"{name}: {target} makes a header slow to compile that every user includes")
                if own == "control" and IMPURE.match(target):
                    found.append(f"{name}: control does no I/O and reads no clock, but includes {target}")
                if other and other != own and other not in ALLOWED[own]:
                    found.append(f"{name}: {own} must not include {other} ({target})")
    return found


def test_includes_go_one_way():
    assert not violations(ROOT)


if __name__ == "__main__":
    problems = violations(ROOT)
    print("\n".join(problems) or "includes go one way")
    sys.exit(1 if problems else 0)
