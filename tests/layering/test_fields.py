#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tables of fields (`visit_fields`) are complete: each names every data member of its struct, or GAPS says
why not.

Runs by itself (ctest does that) and under pytest. The checker is itself tested on small examples.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# file under include/gpusched -> struct -> member -> why the table leaves it out
GAPS = {
    "allocation/allocate.hpp": {
        "AllocateOptions": {
            "further": "a list of dicts in Python, read by hand",
            "groups": "follows from the pods of a job in Python, read with it",
            "traffic": "rows of numbers in Python, read by hand",
        },
    },
    "allocation/named.hpp": {
        "PlaceOptions": {"workload": "one of four types in Python, read by hand"}
    },
    "admission/options.hpp": {"Options": {"filter": "a function"}},
    "consolidation/options.hpp": {"Options": {"rule": "a function in Python, asked for a table"}},
    "consolidation/what_if.hpp": {"WhatIfOptions": {"add_nodes": "a dict of names in Python"}},
    "consolidation/result.hpp": {"Statistics": {"rounds": "a list, which `to_stats` numbers"}},
    "model/plan.hpp": {"PlanSpec": {"tasks": "facts of the snapshot, not in documents"}},
    "milp/solver.hpp": {"SolveOptions": {"start": "an array of numpy in Python, read by hand"}},
    "preemption/options.hpp": {
        "Options": {
            "policy": "a name or a function in Python, read by hand",
            "cost": "a function",
            "filter": "a function",
        },
    },
    "preemption/preempt.hpp": {"MinimalSetsOptions": {"policy": "as that of `Options`"}},
    "sim/harvest.hpp": {
        "HarvestResult": {"stop_reason": "`completed` in Python, where a cancelled run raises"}
    },
    "sim/host_scenario.hpp": {"HostLayout": {"starts": "made by `fixed_starts`, in C++ alone"}},
    "sim/spot_replay.hpp": {"SpotReplayOptions": {"observer": "a function"}},
    "verify/plan.hpp": {"Options": {"rule": "a function"}},
}

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
TEXT = re.compile(r'"(?:[^"\\]|\\.)*"' + r"|(?<!\w)'(?:[^'\\]|\\.)*'")
TABLE = re.compile(r"\bvisit_fields\(std::type_identity<([\w:]+)>(?:\s+\w+)?,\s*\w+\s*&&\s*\w+\)\s*\{")
STRUCT = re.compile(r"\b(?:struct|class)\s+(?:GPUSCHED_\w+\s+)?(\w+)\s*(?:final\s*)?(:[^:{;][^{;]*)?\{")
MEMBER = re.compile(r"&\s*[\w:]+::(\w+)")
# Statements that declare no data member.
OTHER = re.compile(r"(using|static|friend|template|typedef|enum|struct|class|union)\b")


def plain(text):
    """Without comments, what stands in texts, and the signs of operators."""
    return re.sub(r"\boperator\s*[^\w\s(]+", "operator", TEXT.sub('""', COMMENT.sub("", text)))


def body_at(text, opening):
    """What stands between the brace at `opening` and its counterpart."""
    depth = 0
    for at in range(opening, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return text[opening + 1 : at]
    raise ValueError("a brace without its counterpart")


def with_depth(text):
    """Each character with the number of brackets open after it; `<` counts where it stands right after a
    name.
    """
    depth = angles = 0
    for at, c in enumerate(text):
        if c == "<" and at > 0 and (text[at - 1].isalnum() or text[at - 1] == "_"):
            angles += 1
        elif c == ">" and angles > 0 and text[at - 1] != "-":
            angles -= 1
        depth += (c in "([{") - (c in ")]}")
        yield c, depth + angles


def statements(body):
    """The declarations of a struct's body that are no functions."""
    found, now, function = [], "", False
    for c, depth in with_depth(body):
        now += c
        function = function or (c == "(" and depth == 1 and not re.search("[={]", now))
        if depth == 0 and (c == ";" or (c == "}" and function)):
            if not function:
                found.append(now.rstrip(";").strip())
            now, function = "", False
        elif depth == 0 and re.search(r"\b(public|private|protected):$", now):
            now = ""
    return found


def declarators(statement):
    """The names that one declaration of data members declares."""
    names, now, value = [], "", False
    for c, depth in with_depth(statement + ","):
        value = value or (depth <= 1 and c in "={[")
        if depth == 0 and c == ",":
            names += re.findall(r"(\w+)\s*(?::\s*\d+\s*)?$", now.strip())
            now, value = "", False
        elif not value:
            now += c
    return names


def members(body):
    return [
        name
        for statement in statements(body)
        if statement and not OTHER.match(statement)
        for name in declarators(statement)
    ]


def check(text, gaps=None):
    """What is wrong in one header whose `gaps` are those, and how many tables it has."""
    gaps = gaps or {}
    text = plain(text)
    bodies = {struct[1]: body_at(text, struct.end() - 1) for struct in STRUCT.finditer(text)}
    fields = {table[1].split("::")[-1]: body_at(text, table.end() - 1) for table in TABLE.finditer(text)}
    problems = [f"{name}: has no table of fields, but stands in GAPS" for name in gaps if name not in fields]
    for name, table in fields.items():
        if name not in bodies:
            problems.append(f"{name}: has a table of fields, but is no struct of this header")
            continue
        own, listed, left_out = members(bodies[name]), MEMBER.findall(table), gaps.get(name, {})
        problems += [f"{name}: the table lacks {m}" for m in own if m not in listed and m not in left_out]
        problems += [f"{name}: the table has {m} twice" for m in sorted(set(listed)) if listed.count(m) > 1]
        problems += [
            f"{name}: {m} is no gap: strike it from GAPS" for m in left_out if m in listed or m not in own
        ]
    return problems, len(fields)


def check_all():
    """The problems of all headers, and how many tables they have."""
    folder = ROOT / "include/gpusched"
    problems = [
        f"{name}: stands in GAPS, but there is no such file" for name in GAPS if not (folder / name).is_file()
    ]
    tables = 0
    for file in sorted(folder.rglob("*pp")):
        name = file.relative_to(folder).as_posix()
        found, count = check(file.read_text(encoding="utf-8"), GAPS.get(name))
        problems += [f"{name}: {problem}" for problem in found]
        tables += count
    return problems, tables


EXAMPLE = """
struct Base {};
/// A struct with { braces in words.
struct X : Base {
    enum class Kind : std::uint8_t { a, b };
    std::string name = "a; b";  ///< &X::not_this
    double pcie = 0, io{1};
    std::map<int, std::vector<int>> rows{{1, {2}}};
    std::function<int(int, int)> f{};
    std::array<int, 2> pair{1, 2};
    bool small : 1 = 1 < 2;
    static constexpr int constant = 3;
    explicit X(int a) : pcie(a) {}
    [[nodiscard]] int sum() const { return constant; }
    bool operator==(const X&) const = default;
    bool operator<(const X& other) const { return io < other.io; }
    friend void swap(X& a, X& b);

  private:
    int own_ = 0;
};
template <class F>
constexpr void visit_fields(std::type_identity<X>, F&& field) {
    field("name", &X::name);
    field("pcie", &X::pcie, within(0, 1));
    field("io", &X::io, [] { return 1; });
    field("rows", &X::rows);
    field("f", &X::f);
    field("pair", &X::pair);
    field("small", &X::small);
    field("own", &X::own_);
}
"""


def test_members_are_read():
    text = plain(EXAMPLE)
    assert members(body_at(text, text.index("{", text.index("struct X")))) == [
        "name",
        "pcie",
        "io",
        "rows",
        "f",
        "pair",
        "small",
        "own_",
    ]


def test_checker_finds_what_it_should():
    assert check(EXAMPLE) == ([], 1)
    for line in ("pcie", "io", "rows", "f", "pair", "small", "own"):
        entry = next(text for text in EXAMPLE.splitlines() if text.startswith(f'    field("{line}"'))
        assert check(EXAMPLE.replace(entry, "")) == (
            [f"X: the table lacks {'own_' if line == 'own' else line}"],
            1,
        )
        assert check(EXAMPLE.replace(entry, ""), {"X": {"own_" if line == "own" else line: "reason"}}) == (
            [],
            1,
        )
        assert len(check(EXAMPLE.replace(entry, entry + entry))[0]) == 1
        assert len(check(EXAMPLE, {"X": {line: "reason"}})[0]) == 1
    assert len(check(EXAMPLE, {"Y": {"name": "reason"}})[0]) == 1
    assert len(check(EXAMPLE.replace("struct X", "struct Z"))[0]) == 1


def test_tables_are_complete():
    problems, tables = check_all()
    assert tables > 100
    assert not problems, "\n" + "\n".join(problems)


if __name__ == "__main__":
    test_members_are_read()
    test_checker_finds_what_it_should()
    found, count = check_all()
    for problem in found:
        print(problem)
    print(f"{count} tables read, {len(found)} violations")
    sys.exit(1 if found or count <= 100 else 0)
