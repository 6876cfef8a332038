#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shared libraries export every function that others call: reads the symbols of the objects of a build.

    test_exports.py BUILD_FOLDER     with a compile_commands.json; what is not built yet is left out

A definition without GPUSCHED_EXPORT must not be called from another component, a test, a benchmark or the
Python extension, and it must stand in a namespace `detail`. With static libraries such a mistake links
nevertheless; this check finds it in their objects.
"""

import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

COMPONENT = re.compile(r"CMakeFiles/(gpusched_(?:core|json|io|milp|serving|control|sim))\.dir/")
OUTPUT = re.compile(r" -o (\S+\.o) ")
SYMBOL = re.compile(r"^\s*\d+: \S+\s+\d+ (\w+)\s+(\w+)\s+(\w+)\s+(\w+) (\S+)", re.MULTILINE)


def symbols(path):
    """(defined and hidden, undefined) symbols of one object, mangled."""
    text = subprocess.run(
        ["readelf", "--symbols", "--wide", str(path)], capture_output=True, text=True, check=True
    ).stdout
    hidden, undefined = set(), set()
    for _kind, bind, visibility, section, name in SYMBOL.findall(text):
        if section == "UND":
            undefined.add(name)
        elif bind == "GLOBAL" and visibility == "HIDDEN":
            hidden.add(name)
    return hidden, undefined


def readable(names):
    names = sorted(names)
    out = subprocess.run(
        ["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True
    ).stdout
    return dict(zip(names, out.splitlines()))


def is_public(name):
    """Of a readable name: whether neither the function nor a class around it stands in a namespace `detail`.
    """
    return name.startswith("gpusched::") and "detail::" not in name.split("(", 1)[0]


def check(objects):
    """Messages for (component or "", file, hidden, undefined) of every object."""
    owner = {
        name: component for component, _file, hidden, _undefined in objects for name in hidden if component
    }
    text = readable(owner)
    messages = [
        f"{text[name]} is public, but its component does not export it"
        for name in owner
        if is_public(text[name])
    ]
    users = defaultdict(set)
    for component, file, _hidden, undefined in objects:
        for name in undefined & owner.keys():
            if owner[name] != component:
                users[name].add(file)
    for name, files in users.items():
        messages.append(
            f"{text[name]} of {owner[name]} is not exported, but called by {', '.join(sorted(files))}"
        )
    return sorted(messages)


def self_test():
    hidden, shown = "_ZN8gpusched1fEv", "_ZN8gpusched1gEv"
    inner = "_ZN8gpusched6detail1fEv"  # gpusched::detail::f()
    core, io = "gpusched_core", "gpusched_io"
    assert (
        check(
            [(core, "a.o", {inner}, set()), (core, "b.o", set(), {inner, shown}), (io, "c.o", set(), {shown})]
        )
        == []
    )
    assert check([(core, "a.o", {hidden}, set())]) == [
        "gpusched::f() is public, but its component does not export it"
    ]
    for other in (io, ""):
        assert check([(core, "a.o", {inner}, set()), (other, "c.o", set(), {inner})]) == [
            "gpusched::detail::f() of gpusched_core is not exported, but called by c.o"
        ]


def main(build):
    self_test()
    objects = []
    for command in json.loads((Path(build) / "compile_commands.json").read_text()):
        file = OUTPUT.search(command["command"])
        if file and (path := Path(command["directory"]) / file.group(1)).exists():
            component = COMPONENT.search(file.group(1))
            objects.append((component.group(1) if component else "", file.group(1), *symbols(path)))
    if not any(component for component, *_ in objects):
        return ["no object of a component was found: the check does not work"]
    return check(objects)


if __name__ == "__main__":
    found = main(sys.argv[1])
    print("\n".join(found) or "every function called across components is exported, and every public one")
    sys.exit(1 if found else 0)
