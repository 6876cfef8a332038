#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Includes go one way: checks the #include lines of the library against the table below.

Runs by itself (ctest does that) and under pytest. The checker is itself tested on small examples.
"""

import re
import sys
import tempfile
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
    "sim": {
        "core",
        "model",
        "fragmentation",
        "allocation",
        "consolidation",
        "preemption",
        "control",
        "serving",
    },
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
    """The folder of an included path, `gpusched/<component>/...` or `<component>/...`; None without one."""
    parts = path.removeprefix("gpusched/").split("/")
    return parts[0] if len(parts) > 1 else None


def violations(root):
    found = []
    for folder in ("include/gpusched", "src"):
        for file in sorted((root / folder).rglob("*pp")):
            inside = file.relative_to(root / folder).as_posix()
            name = f"{folder}/{inside}"
            own = component_of(inside)
            if own is None:  # umbrella headers, version.cpp
                continue
            if own not in ALLOWED:
                found.append(f"{name}: component {own} is not in the table of test_layering.py")
                continue
            public = folder.startswith("include")
            for target in INCLUDE.findall(file.read_text(encoding="utf-8")):
                other = component_of(target)
                other = other if other in ALLOWED else None
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


def missing_from_umbrellas(root):
    """Public headers that `<component>/<component>.hpp` does not include, except those over Boost.Graph."""
    include = root / "include"
    found = []
    for component in ALLOWED:
        reached = set()
        waiting = [f"gpusched/{component}/{component}.hpp"]
        while waiting:
            header = waiting.pop()
            if header in reached or component_of(header) != component or not (include / header).is_file():
                continue
            reached.add(header)
            waiting += INCLUDE.findall((include / header).read_text(encoding="utf-8"))
        for file in sorted((include / "gpusched" / component).rglob("*.hpp")):
            header = file.relative_to(include).as_posix()
            if header not in reached and "/detail/" not in header and not file.name.startswith("boost_"):
                found.append(f"{header}: {component}.hpp does not include it")
    return found


def found_in(check, files):
    """The findings of a check in a small tree of files {path: text}."""
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            (Path(folder) / path).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / path).write_text(text, encoding="utf-8")
        return check(Path(folder))


def test_checker_finds_wrong_includes():
    for path, include, finding in (
        ("include/gpusched/core/a.hpp", "<gpusched/model/b.hpp>", "core must not include model"),
        ("src/verify/a.cpp", '"consolidation/b.hpp"', "verify must not include consolidation"),
        ("include/gpusched/io/a.hpp", '"io/b.hpp"', "includes the private header io/b.hpp"),
        ("include/gpusched/model/a.hpp", "<Eigen/Core>", "Eigen/Core makes a header slow"),
        ("src/control/a.cpp", "<chrono>", "reads no clock, but includes chrono"),
        ("src/nonsense/a.cpp", "<vector>", "component nonsense is not in the table"),
    ):
        found = found_in(violations, {path: f"#include {include}\n"})
        assert len(found) == 1 and found[0].startswith(path) and finding in found[0], (path, found)
    right = {
        "include/gpusched/io/a.hpp": "#include <gpusched/model/b.hpp>\n#include <vector>\n",
        "src/io/a.cpp": '#include "io/c.hpp"\n#include <nlohmann/json.hpp>\n',
        "include/gpusched/gpusched.hpp": "#include <gpusched/sim/sim.hpp>\n",
    }
    assert found_in(violations, right) == []


def test_checker_finds_headers_outside_an_umbrella():
    right = {
        "include/gpusched/io/io.hpp": "#include <gpusched/io/a.hpp>\n",
        "include/gpusched/io/a.hpp": "#include <gpusched/io/b.hpp>\n",
        "include/gpusched/io/b.hpp": "",
        "include/gpusched/io/detail/c.hpp": "",
    }
    assert found_in(missing_from_umbrellas, right) == []
    wrong = right | {"include/gpusched/io/d.hpp": ""}
    assert found_in(missing_from_umbrellas, wrong) == ["gpusched/io/d.hpp: io.hpp does not include it"]


def test_every_component_is_checked():
    for component in ALLOWED:
        assert list((ROOT / "include/gpusched" / component).glob("*.hpp")), component


def test_includes_go_one_way():
    assert not violations(ROOT)


def test_umbrella_headers_are_complete():
    assert not missing_from_umbrellas(ROOT)


if __name__ == "__main__":
    test_checker_finds_wrong_includes()
    test_checker_finds_headers_outside_an_umbrella()
    test_every_component_is_checked()
    problems = violations(ROOT) + missing_from_umbrellas(ROOT)
    print("\n".join(problems) or "includes go one way, and umbrella headers are complete")
    sys.exit(1 if problems else 0)
