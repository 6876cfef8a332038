#!/usr/bin/env python3
"""Who may include whom: reads the #include lines of the library and checks them against the table below.

Runs by itself (ctest does that) and under pytest. The checker is itself tested on small wrong examples.
"""

import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# component -> the components it includes besides itself. An entry that nothing needs is an error, too.
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
    "host": {"core", "json", "control"},
    "sim": {"core", "model", "fragmentation", "allocation", "consolidation", "preemption", "control"},
}

# Headers outside the components that everyone may include.
COMMON = {"gpusched/config.hpp", "gpusched/version.hpp"}

# room -> headers in another room's detail/ that it includes, beside those of core/, and why they are no interface for users.
FOREIGN_DETAIL = {
    "admission": {
        "gpusched/allocation/detail/gang.hpp": "the search of `allocate`, with a budget and a cluster of its own",
        "gpusched/model/detail/placement_order.hpp": "the order in which the placements of a decision are feasible",
        "gpusched/preemption/detail/gang_table.hpp": "which gangs stop when a task leaves",
        "gpusched/preemption/detail/request.hpp": "which tasks may be victims",
    },
    "allocation": {
        "gpusched/fragmentation/detail/node_groups.hpp": "the domains of a level",
        "gpusched/model/detail/placement_order.hpp": "as for admission",
        "gpusched/model/detail/pod_room.hpp": "how many copies of a pod a node hosts",
    },
    "host": {"gpusched/control/detail/document_forms.hpp": "its documents name tenants and instances as those of control"},
    "io": {
        "gpusched/model/detail/cordon_taint.hpp": "the taint that a cordon is",
        "gpusched/model/detail/node_match.hpp": "selectors of nodes, while labels are read",
    },
    "milp": {"gpusched/model/detail/pod_room.hpp": "as for allocation"},
    "sim": {"gpusched/model/detail/name_order.hpp": "traces list nodes in the order of their ids"},
    "preemption": {
        "gpusched/allocation/detail/exact_packing.hpp": "whether all pods of a gang fit",
        "gpusched/model/detail/device_sets.hpp": "whether devices that a caller names are of one class",
        "gpusched/model/detail/placement_order.hpp": "as for admission",
    },
}

# Rooms that python/bindings/support includes, and why. It lies under the bindings of all rooms and includes none of them.
SUPPORT = {
    "core": "errors, tables of fields, the context of calls",
    "json": "dicts are read as documents",
    "milp": "every call brings the LP solver",
    "model": "keywords take names of nodes and tasks",
}

# room of bindings -> rooms above its own that they include, and why.
UPWARD_BINDINGS = {
    "allocation": {"io": "jobs and tasks that are dicts are read as documents"},
    "milp": {"allocation": "jobs that are dicts are read as `allocate` reads them"},
    "model": {
        "consolidation": "a plan shows the rounds of its search",
        "io": "clusters and plans are read, written and pickled as documents",
    },
    "sim": {"io": "traces are pickled as documents"},
    "topology": {"io": "machines that are dicts are read as documents"},
}

# Not in the headers of core/ and model/ (their impl/ files may).
HEAVY = re.compile(r"^(iostream|regex|Eigen/.*|unsupported/Eigen/.*|boost/.*|nlohmann/json\.hpp|csv\.h)$")
VOCABULARY = {"core", "model"}
# Headers over a heavy library, for bodies (impl/) alone.
BODIES_ONLY = {"gpusched/core/detail/csv_parser.hpp", "gpusched/core/detail/csv_reader.hpp"}
# Headers of others -> the header of core/ that brings them without a false warning of the compiler.
WRAPPED = {"boost/container/small_vector.hpp": "gpusched/core/detail/small_vector.hpp"}

# The decision core of control/ does no I/O and reads no clock.
IMPURE = re.compile(
    r"^(fstream|iostream|filesystem|chrono|ctime|thread|mutex|random|unistd\.h|fcntl\.h|poll\.h|signal\.h|spawn\.h"
    r"|dlfcn\.h|sched\.h|sys/.*|gpusched/core/(clock|file|rng)\.hpp)$"
)
PURE = {"control"}

# A header leaves no macro to those that include it; those of COMMON may.
DEFINE = re.compile(r"^\s*#\s*define\s+(\w+)", re.MULTILINE)
UNDEF = re.compile(r"^\s*#\s*undef\s+(\w+)", re.MULTILINE)

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


def includes(text):
    """The (quote, path) pairs of the #include lines outside comments."""
    return INCLUDE.findall(COMMENT.sub("", text))


def component_of(path):
    """`core` for gpusched/core/rng.hpp and for core.cpp under src/; None for files outside a component."""
    parts = path.split("/")
    if parts[0] == "gpusched":
        parts = parts[1:]
    elif path.endswith(".cpp") and path != "version.cpp":
        return path.removesuffix(".cpp")
    return parts[0] if len(parts) > 1 else None


def check(root):
    """All violations under root/include and root/src, as text; the number of files; which component includes which."""
    problems = []
    files = 0
    used = set()
    for base in ("include", "src"):
        for file in sorted((root / base).rglob("*")):
            if file.suffix not in {".hpp", ".ipp", ".cpp"}:
                continue
            files += 1
            name = file.relative_to(root).as_posix()
            own = component_of(file.relative_to(root / base).as_posix())
            if own is not None and own not in ALLOWED:
                problems.append(f"{name}: component '{own}' is not in the table of {Path(__file__).name}")
                continue
            is_header = base == "include" and file.suffix == ".hpp" and "/impl/" not in name
            text = file.read_text(encoding="utf-8")
            if base == "include" and name.removeprefix("include/") not in COMMON:
                for macro in sorted(set(DEFINE.findall(text)) - set(UNDEF.findall(text))):
                    problems.append(f"{name}: leaves the macro {macro} to whoever includes it")
            for quote, target in includes(text):
                if quote == '"' and base == "include":
                    problems.append(f'{name}: include <gpusched/...> with angle brackets, not "{target}"')
                if target.startswith("boost/graph/") and own != "topology":
                    problems.append(f"{name}: only topology/ includes Boost.Graph, not <{target}>")
                if target in WRAPPED and name.removeprefix("include/") != WRAPPED[target]:
                    problems.append(f"{name}: include <{WRAPPED[target]}> instead of <{target}>")
                if is_header and target in BODIES_ONLY and name.removeprefix("include/") not in BODIES_ONLY:
                    problems.append(f"{name}: only bodies (impl/) include <{target}>")
                if (
                    is_header and own in VOCABULARY and (HEAVY.match(target) or target in WRAPPED.values())
                    and name.removeprefix("include/") not in BODIES_ONLY | set(WRAPPED.values())
                ):
                    problems.append(f"{name}: <{target}> is too heavy for a vocabulary header")
                if own in PURE and IMPURE.match(target):
                    problems.append(f"{name}: {own} does no I/O and reads no clock, but includes <{target}>")
                    continue
                if not target.startswith("gpusched/") or target in COMMON:
                    continue
                if target == "gpusched/gpusched.hpp":
                    problems.append(f"{name}: no part of the library includes the main umbrella header")
                    continue
                other = component_of(target)
                if own is None:  # gpusched.hpp and the like
                    if name in {f"include/{common}" for common in COMMON}:
                        problems.append(f"{name}: must stand alone, but includes <{target}>")
                elif other != own:
                    used.add((own, other))
                    if other not in ALLOWED[own]:
                        problems.append(f"{name}: {own} must not include {other} (<{target}>)")
    return problems, files, used


def check_details(root, allowed):
    """Headers in a `detail/` of another room than core that a room includes, or that `allowed` lists for nothing, as text."""
    problems = []
    used = set()
    for file in sorted((root / "include").rglob("*pp")):
        name = file.relative_to(root).as_posix()
        own = component_of(file.relative_to(root / "include").as_posix())
        for _, target in includes(file.read_text(encoding="utf-8")):
            if "/detail/" not in target or component_of(target) in {own, "core"} or own is None:
                continue
            used.add((own, target))
            if target not in allowed.get(own, {}):
                problems.append(f"{name}: <{target}> belongs to {component_of(target)} alone")
    return problems + [
        f"{own} may include <{target}>, but no file of it does"
        for own in allowed for target in allowed[own] if (own, target) not in used
    ]


def check_umbrellas(root):
    """Public headers of a room that its umbrella, <room>/<room>.hpp, does not bring, as text; those over Boost.Graph stay apart."""
    texts = {
        file.relative_to(root / "include").as_posix(): file.read_text(encoding="utf-8")
        for file in sorted((root / "include").rglob("*.hpp"))
    }

    def reach(name, room, seen):
        if name in texts and name not in seen:
            seen.add(name)
            for _, target in includes(texts[name]):
                if component_of(target) == room:
                    reach(target, room, seen)
        return seen

    problems = []
    for room in sorted({component_of(name) for name in texts} - {None}):
        brought = reach(f"gpusched/{room}/{room}.hpp", room, set())
        problems += [
            f"include/{name}: {room}/{room}.hpp does not bring it" for name in sorted(texts)
            if component_of(name) == room and "/detail/" not in name and "/impl/" not in name and name not in brought
            and not name.startswith("gpusched/topology/boost_")
        ]
    return problems


def below(room, allowed):
    """The rooms under a room: those that it includes, and those under them."""
    return allowed[room].union(*(below(other, allowed) for other in allowed[room]))


def check_bindings(root, allowed, upward, support):
    """The bindings lie in folders that are called as the rooms, over what all of them share, `support/`; only the module itself
    stands above them. They include, of the library and of other bindings, what lies under their room, json (dicts are read as
    documents), and what `upward` lists; `support/` includes of the library the rooms that `support` lists. What either lists for
    nothing is an error. Of a room's `detail/` they include nothing, but for core's."""
    folder = root / "python/bindings"
    problems = []
    used = set()
    for path in sorted(folder.rglob("*pp")):
        source = path.relative_to(folder)
        own = source.parts[0]
        name = f"python/bindings/{source.as_posix()}"
        if source.as_posix() == "module.cpp":
            continue
        if own not in {*allowed, "support"}:
            problems.append(f"{name}: is in no folder of a room")
            continue
        shared = own == "support"
        free = {own} if shared else {own, "support", "core", "json"} | below(own, allowed)
        for quote, target in includes(path.read_text(encoding="utf-8")):
            if target.startswith("gpusched/") and "/detail/" in target and component_of(target) != "core":
                problems.append(f"{name}: <{target}> belongs to {component_of(target)} alone")
            other = target.split("/")[0] if quote == '"' else component_of(target) if target.startswith("gpusched/") else None
            if other is None or other in free:
                continue
            used.add((own, other))
            listed = upward.get(own, {}) if not shared else support if quote == "<" else {}
            if other not in listed:
                problems.append(f"{name}: bindings of {own} must not include {other} (<{target}>)")
    return problems + [
        f"bindings of {own} may include {other}, but no file of theirs does"
        for own, listed in {**upward, "support": support}.items() for other in listed if (own, other) not in used
    ]


def unused(used, allowed):
    """What `allowed` lets a component include and none of its files does, as text."""
    return [
        f"{own} may include {other}, but no file of {own} does: strike it from the table of {Path(__file__).name}"
        for own in allowed for other in sorted(allowed[own]) if (own, other) not in used
    ]


COMPONENT = re.compile(r"^gpusched_component\(\s*(\w+)\s+([^)]*)\)", re.MULTILINE)


def read_components(table):
    """Per CMake component its rooms and the components that it needs, from the text of the component table."""
    rooms, needs = {}, {}
    for name, words in COMPONENT.findall(table):
        field = None
        rooms[name], needs[name] = [], []
        for word in words.split():
            if word.isupper():
                field = word
            elif field == "ROOMS":
                rooms[name].append(word)
            elif field == "NEEDS":
                needs[name].append(word)
    return rooms, needs


def rooms_to_reach(rooms, needs):
    """Per room, the rooms of its component and of those below it."""

    def below(name):
        return {name}.union(*(below(other) for other in needs[name]))

    return {room: {r for c in below(name) for r in rooms[c]} for name in rooms for room in rooms[name]}


def check_components(root, table):
    """Includes that a room's CMake component does not link, and components linked for nothing, as text."""
    rooms, needs = read_components(table)
    reachable = rooms_to_reach(rooms, needs)
    component = {room: name for name in rooms for room in rooms[name]}
    problems = []
    used = set()
    for file in sorted((root / "include").rglob("*pp")):
        name = file.relative_to(root).as_posix()
        own = component_of(file.relative_to(root / "include").as_posix())
        if own is None:
            continue
        if own not in reachable:
            problems.append(f"{name}: the room {own} belongs to no component of .cmake/GpuschedComponents.cmake")
            continue
        for _, target in includes(file.read_text(encoding="utf-8")):
            other = component_of(target) if target.startswith("gpusched/") else None
            if other is not None and other not in reachable[own]:
                problems.append(f"{name}: the component of {own} does not link that of {other} (<{target}>)")
            elif other is not None:
                used.add((component[own], component[other]))
    return problems + [
        f"the component {name} needs {below}, but includes nothing of it"
        for name in needs for below in needs[name] if (name, below) not in used
    ]


PLAIN = re.compile(r"^\s*(?:inline )?namespace gpusched\b(?!\s*=)", re.MULTILINE)
VERSIONED = re.compile(r"^\s*namespace GPUSCHED_NAMESPACE\b", re.MULTILINE)


def check_namespaces(root):
    """Headers and bodies whose names do not stand in the inline namespace of the ABI version (docs/abi.md), as text."""
    texts = {
        file.relative_to(root / "include").as_posix(): file.read_text(encoding="utf-8")
        for file in sorted((root / "include").rglob("*pp"))
    }

    def defined(name, seen):
        """Whether what `name` includes before its first namespace defines GPUSCHED_NAMESPACE."""
        if name in COMMON:
            return True
        if name in seen or name not in texts:
            return False
        seen.add(name)
        before = VERSIONED.split(texts[name], maxsplit=1)[0]
        return any(defined(target, seen) for _, target in includes(before))

    problems = []
    for name, text in texts.items():
        if PLAIN.search(text):
            problems.append(f"include/{name}: opens `namespace gpusched`, not `namespace GPUSCHED_NAMESPACE`")
        elif name.endswith(".hpp") and VERSIONED.search(text) and not defined(name, set()):
            problems.append(f"include/{name}: opens GPUSCHED_NAMESPACE, but includes no <gpusched/config.hpp> before")
    return problems


def check_tree(tree, checker=check):
    """What `checker` finds in a small tree given as {path: text}."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for path, text in tree.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        return checker(root)


def violations_of(tree):
    return check_tree(tree)[0]


def test_namespaces_are_checked():
    right = {
        "include/gpusched/core/a.hpp": "#include <gpusched/config.hpp>\nnamespace GPUSCHED_NAMESPACE {}\n",
        "include/gpusched/core/b.hpp": "#include <gpusched/core/a.hpp>\nnamespace GPUSCHED_NAMESPACE::detail {}\n",
    }
    assert check_tree(right, check_namespaces) == []
    for wrong in (
        "#include <gpusched/config.hpp>\nnamespace gpusched::detail {\n",
        "#include <vector>\nnamespace GPUSCHED_NAMESPACE {}\n",
        "namespace GPUSCHED_NAMESPACE {}\n#include <gpusched/core/a.hpp>\n",
    ):
        found = check_tree(right | {"include/gpusched/core/c.hpp": wrong}, check_namespaces)
        assert len(found) == 1 and found[0].startswith("include/gpusched/core/c.hpp"), (wrong, found)


def test_checker_finds_what_it_should():
    wrong = {
        "include/gpusched/core/a.hpp": "#include <gpusched/model/b.hpp>\n",
        "include/gpusched/model/b.hpp": "#include <Eigen/Core>\n",
        "include/gpusched/model/c.hpp": "#  include <iostream>\n",
        "include/gpusched/core/n.hpp": "#include <csv.h>\n",
        "include/gpusched/io/o.hpp": "#include <gpusched/core/detail/csv_reader.hpp>\n",
        "include/gpusched/allocation/d.hpp": "#include <boost/graph/adjacency_list.hpp>\n",
        "include/gpusched/verify/e.hpp": "#include <gpusched/consolidation/f.hpp>\n",
        "include/gpusched/consolidation/f.hpp": "#include <gpusched/preemption/g.hpp>\n",
        "include/gpusched/control/h.hpp": "#include <gpusched/model/b.hpp>\n",
        "include/gpusched/control/n.hpp": "#include <gpusched/host/o.hpp>\n",
        "include/gpusched/control/p.hpp": "#include <chrono>\n",
        "include/gpusched/nonsense/i.hpp": "",
        "include/gpusched/model/q.hpp": "#define GPUSCHED_MISSPELT(name) name\n",
        "include/gpusched/io/j.hpp": '#include "k.hpp"\n',
        "include/gpusched/version.hpp": "#include <gpusched/model/b.hpp>\n",
        "src/consolidation.cpp": "#include <gpusched/sim/m.hpp>\n",
    }
    for path, text in wrong.items():
        found = violations_of({path: text})
        assert len(found) == 1 and found[0].startswith(path), (path, found)


def test_checker_accepts_what_is_right():
    right = {
        "include/gpusched/core/a.hpp": "#include <cstdint>\n// #include <gpusched/model/b.hpp>\n",
        "include/gpusched/core/detail/csv_parser.hpp": "#include <csv.h>\n",
        "include/gpusched/core/detail/csv_reader.hpp": "#include <gpusched/core/detail/csv_parser.hpp>\n",
        "include/gpusched/io/impl/p.ipp": "#include <gpusched/core/detail/csv_reader.hpp>\n",
        "include/gpusched/model/q.hpp": "#define GPUSCHED_Q 1\n#undef GPUSCHED_Q\n",
        "include/gpusched/config.hpp": "#define GPUSCHED_INLINE inline\n",
        "include/gpusched/core/impl/a.ipp": "#include <iostream>\n/*\n#include <gpusched/sim/x.hpp>\n*/\n",
        "include/gpusched/topology/t.hpp": "#include <boost/graph/adjacency_list.hpp>\n",
        "include/gpusched/host/o.hpp": "#include <gpusched/control/h.hpp>\n#include <gpusched/core/j.hpp>\n",
        "include/gpusched/sim/s.hpp": "#include <gpusched/preemption/p.hpp>\n#include <gpusched/control/c.hpp>\n",
        "include/gpusched/gpusched.hpp": "#include <gpusched/sim/s.hpp>\n",
        "src/topology.cpp": "#include <gpusched/topology/impl/t.ipp>\n",
    }
    assert violations_of(right) == []


def test_unused_entries_are_found():
    used = check_tree({"include/gpusched/io/a.hpp": "#include <gpusched/model/b.hpp>\n"})[2]
    assert used == {("io", "model")}
    found = unused(used, {"io": {"model", "core"}, "core": set()})
    assert len(found) == 1 and found[0].startswith("io may include core")


def test_foreign_details_are_found():
    tree = {"include/gpusched/io/a.hpp": "#include <gpusched/model/detail/b.hpp>\n#include <gpusched/core/detail/c.hpp>\n"}
    allowed = {"io": {"gpusched/model/detail/b.hpp": "why"}}
    assert check_tree(tree, lambda root: check_details(root, allowed)) == []
    assert len(check_tree(tree, lambda root: check_details(root, {}))) == 1
    assert len(check_tree({"include/gpusched/io/a.hpp": ""}, lambda root: check_details(root, allowed))) == 1


def test_umbrellas_are_checked():
    right = {
        "include/gpusched/io/io.hpp": "#include <gpusched/io/a.hpp>\n", "include/gpusched/io/detail/c.hpp": "",
        "include/gpusched/io/a.hpp": "#include <gpusched/io/parts/b.hpp>\n", "include/gpusched/io/parts/b.hpp": "",
    }
    assert check_tree(right, check_umbrellas) == []
    assert len(check_tree(right | {"include/gpusched/io/parts/d.hpp": ""}, check_umbrellas)) == 1


def test_bindings_are_in_rooms():
    tree = {"python/bindings/module.cpp": "", "python/bindings/model/a.cpp": "", "python/bindings/b.hpp": "", "python/bindings/x/c.cpp": ""}
    assert check_tree(tree, lambda root: check_bindings(root, {"model": set()}, {}, {})) == [
        "python/bindings/b.hpp: is in no folder of a room",
        "python/bindings/x/c.cpp: is in no folder of a room",
    ]


def test_bindings_include_what_lies_under_them():
    allowed = {"core": set(), "model": {"core"}, "io": {"model"}}
    right = {"python/bindings/io/a.cpp": '#include "core/a.hpp"\n#include "model/b.hpp"\n#include <gpusched/core/c.hpp>\n'}
    assert check_tree(right, lambda root: check_bindings(root, allowed, {}, {})) == []
    for text in ('#include "io/a.hpp"\n', "#include <gpusched/io/a.hpp>\n"):
        wrong = {"python/bindings/model/b.cpp": text}
        assert len(check_tree(wrong, lambda root: check_bindings(root, allowed, {}, {}))) == 1
        assert check_tree(wrong, lambda root: check_bindings(root, allowed, {"model": {"io": "why"}}, {})) == []
    assert len(check_tree(right, lambda root: check_bindings(root, allowed, {"model": {"io": "why"}}, {}))) == 1
    for text, found in (("#include <gpusched/model/a.hpp>\n", 0), ("#include <gpusched/io/a.hpp>\n", 2), ('#include "model/a.hpp"\n', 1)):
        shared = {"python/bindings/support/a.hpp": text, "python/bindings/io/b.cpp": '#include "support/a.hpp"\n'}
        assert len(check_tree(shared, lambda root: check_bindings(root, allowed, {}, {"model": "why"}))) == found
    inner = {"python/bindings/io/a.cpp": "#include <gpusched/io/detail/a.hpp>\n#include <gpusched/core/detail/b.hpp>\n"}
    assert len(check_tree(inner, lambda root: check_bindings(root, allowed, {}, {}))) == 1


TABLE = "gpusched_component(\n  core\n  ROOMS core model)\ngpusched_component(io ROOMS io NEEDS core PRIVATE csv)\n"


def test_component_table_is_read():
    rooms, needs = read_components(TABLE)
    assert rooms == {"core": ["core", "model"], "io": ["io"]} and needs == {"core": [], "io": ["core"]}
    assert rooms_to_reach(rooms, needs) == {
        "core": {"core", "model"}, "model": {"core", "model"}, "io": {"core", "model", "io"},
    }


def test_components_are_checked():
    right = {"include/gpusched/io/a.hpp": "#include <gpusched/model/b.hpp>\n"}
    assert check_tree(right, lambda root: check_components(root, TABLE)) == []
    for wrong in (
        {"include/gpusched/io/a.hpp": "#include <vector>\n"},
        right | {"include/gpusched/model/b.hpp": "#include <gpusched/io/a.hpp>\n"},
        right | {"include/gpusched/sim/c.hpp": ""},
    ):
        assert len(check_tree(wrong, lambda root: check_components(root, TABLE))) == 1, wrong


def test_components_link_what_they_include():
    table = (ROOT / ".cmake/GpuschedComponents.cmake").read_text(encoding="utf-8")
    assert set(rooms_to_reach(*read_components(table))) == set(ALLOWED)
    problems = check_components(ROOT, table)
    assert not problems, "\n" + "\n".join(problems)


def test_library_keeps_its_layers():
    problems, files, used = check(ROOT)
    problems += check_namespaces(ROOT) + check_details(ROOT, FOREIGN_DETAIL) + check_umbrellas(ROOT)
    problems += check_bindings(ROOT, ALLOWED, UPWARD_BINDINGS, SUPPORT) + unused(used, ALLOWED)
    assert files > 0
    assert not problems, "\n" + "\n".join(problems)


if __name__ == "__main__":
    test_checker_finds_what_it_should()
    test_checker_accepts_what_is_right()
    test_unused_entries_are_found()
    test_component_table_is_read()
    test_components_are_checked()
    test_components_link_what_they_include()
    test_namespaces_are_checked()
    test_foreign_details_are_found()
    test_umbrellas_are_checked()
    test_bindings_are_in_rooms()
    found, count, edges = check(ROOT)
    found += check_namespaces(ROOT) + check_details(ROOT, FOREIGN_DETAIL) + check_umbrellas(ROOT)
    found += check_bindings(ROOT, ALLOWED, UPWARD_BINDINGS, SUPPORT) + unused(edges, ALLOWED)
    for problem in found:
        print(problem)
    print(f"{count} files read, {len(found)} violations")
    sys.exit(1 if found or count == 0 else 0)
