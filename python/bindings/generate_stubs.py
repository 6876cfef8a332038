#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the stubs of the extension, gpusched/_core/*.pyi, from the docstrings of the built extension.

    PYTHONPATH=<build folder>/python python3 python/bindings/generate_stubs.py [--check]

With --check, it writes nothing, prints differences from the committed stubs, and exits with status 1 if there
are any.

Types: with GPUSCHED_TYPED_SIGNATURES set, the docstring of every function begins with the signature that
pybind11 derives from C++: positional parameters, their types, the result. If the function has keyword-only
options, our own signature follows, with their types and defaults. python/bindings/support/arguments.hpp
defines types that C++ does not have. Stubs contain no docstrings, so that a changed sentence in a header does
not change a stub.

pybind11-stubgen does not read the second signature: it writes `**kwargs` for all options, without defaults.
An extension of it (1,200 lines) would be longer than this program.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import difflib
import os
import re
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

WIDTH = 110
FOLDER = Path(__file__).resolve().parents[1] / "gpusched" / "_core"
HEADER = "# Written by python/bindings/generate_stubs.py from the bindings; do not edit.\n"

STANDARD = {
    "collections.abc": ("Callable", "Iterable", "Iterator", "Mapping", "Sequence"),
    "os": ("PathLike",),
    "typing": ("Any", "Literal"),
}
"""Names that types use without their module."""

ALIASES = {"networkx": "nx", "numpy": "np", "numpy.typing": "npt", "pandas": "pd", "pyarrow": "pa"}

NUMBERS = {"typing.SupportsInt": "int", "typing.SupportsIndex": "int", "typing.SupportsFloat": "float"}
"""pybind11's types of numbers. Type checkers accept an int for a float."""

DATA_MODEL = {
    "__eq__": "(self, other: object, /) -> bool",
    "__contains__": "(self, item: object, /) -> bool",
    "__copy__": "(self) -> {name}",
    "__deepcopy__": "(self, memo: dict[int, Any], /) -> {name}",
}
"""Methods with types that Python prescribes."""

IGNORED = {"__repr__", "__str__", "__getstate__", "__setstate__", "__reduce__", "__doc__", "__module__"}


def parse(signature: str) -> ast.FunctionDef:
    """Parses a signature such as `name(a: int, *, b=1) -> str`; that of a property has no name."""
    try:
        parsed = ast.parse(f"def {'_' if signature.startswith('(') else ''}{signature}: ...").body[0]
    except SyntaxError as error:
        raise SystemExit(f"not a Python signature: {signature}") from error
    assert isinstance(parsed, ast.FunctionDef)
    return parsed


def parameters(function: ast.FunctionDef) -> list[ast.arg]:
    a = function.args
    return [*a.posonlyargs, *a.args, *([a.vararg] if a.vararg else []), *a.kwonlyargs]


def merged(typed: ast.FunctionDef, own: ast.FunctionDef) -> ast.FunctionDef:
    """Our own signature, with pybind11's types for parameters without a type."""
    by_name = {p.arg: p.annotation for p in parameters(typed)}
    for position, parameter in enumerate([*own.args.posonlyargs, *own.args.args]):
        parameter.annotation = parameter.annotation or by_name.get(
            parameter.arg, by_name.get(f"arg{position - (own.args.args[0].arg == 'self')}")
        )
    for parameter in own.args.kwonlyargs:
        parameter.annotation = parameter.annotation or by_name.get(parameter.arg)
    if own.args.vararg and typed.args.vararg:
        own.args.vararg.annotation = typed.args.vararg.annotation
    if own.args.kwarg and typed.args.kwarg:
        own.args.kwarg.annotation = typed.args.kwarg.annotation
    own.returns = typed.returns
    return own


def signatures(name: str, doc: str) -> list[ast.FunctionDef]:
    """The signatures of a function, one per overload."""
    lines = doc.split("\n")
    if len(lines) > 1 and lines[1] == "Overloaded function.":
        return [
            parse(line.split(" ", 1)[1]) for line in lines if re.match(rf"\d+\. {re.escape(name)}\(", line)
        ]
    typed = parse(lines[0])
    if "--" in lines[1:4]:
        return [merged(typed, parse(lines[lines.index("--") - 1]))]
    return [typed]


class Module:
    """Builds one stub file."""

    def __init__(self, name: str, classes: dict[str, list[str]]) -> None:
        self.name = name
        self.classes = classes
        self.names: dict[str, set[str]] = {}
        self.modules: set[str] = set()
        self.lines: list[str] = []

    # Types.

    def imported(self, module: str, name: str) -> str:
        self.names.setdefault(module, set()).add(name)
        return name

    def named(self, dotted: str) -> str:
        """A name within a type, with its import if it needs one."""
        module, _, name = dotted.rpartition(".")
        if not module:
            if name in self.classes and self.name in self.classes[name] or hasattr(builtins, name):
                return name
            for standard, names in STANDARD.items():
                if name in names:
                    return self.imported(standard, name)
            if len(self.classes.get(name, ())) != 1:
                raise SystemExit(f"{self.name}: no unique class {name}")
            return self.imported("." + self.classes[name][0], name)
        if module == "gpusched." + self.name:
            return name
        if module.startswith("gpusched."):
            part = module.removeprefix("gpusched.")
            return self.imported(f".{part}" if part in self.classes.get(name, ()) else f"..{part}", name)
        if module in ALIASES:
            self.modules.add(module)
            return f"{ALIASES[module]}.{name}"
        return NUMBERS.get(dotted) or self.imported(module, name)

    def type(self, node: ast.expr | None) -> str:
        if node is None:
            return self.imported("typing", "Any")
        if isinstance(node, ast.BinOp):
            parts: list[str] = []
            for part in self.alternatives(node):
                if (text := self.type(part)) not in parts:
                    parts.append(text)
            return " | ".join(parts)
        if isinstance(node, ast.Subscript):
            base = self.type(node.value)
            if base == "Literal":
                return f"{base}[{literal(node.slice).strip('()')}]"
            return f"{base}[{self.type(node.slice)}]"
        if isinstance(node, (ast.Tuple, ast.List)):
            text = ", ".join(self.type(item) for item in node.elts)
            return f"[{text}]" if isinstance(node, ast.List) else text
        if isinstance(node, ast.Constant):
            return "..." if node.value is ... else repr(node.value)
        return self.named(ast.unparse(node))

    def alternatives(self, node: ast.expr) -> list[ast.expr]:
        if not isinstance(node, ast.BinOp):
            return [node]
        found = [*self.alternatives(node.left), *self.alternatives(node.right)]
        texts = [ast.unparse(part) for part in found]
        if "typing.SupportsFloat" in texts and "typing.SupportsIndex" in texts:
            del found[texts.index("typing.SupportsIndex")]
        return found

    # Functions.

    def parameter_list(self, function: ast.FunctionDef, in_class: bool) -> list[str]:
        a = function.args
        positional = [*a.posonlyargs, *a.args]
        defaults = [None] * (len(positional) - len(a.defaults)) + a.defaults
        unnamed = [i for i, p in enumerate(positional) if re.fullmatch(r"arg\d+", p.arg)]
        last_positional = max(len(a.posonlyargs) - 1, *unnamed, -1)
        found = []
        for i, (parameter, default) in enumerate(zip(positional, defaults)):
            if in_class and i == 0:
                found.append("self")
            else:
                found.append(self.parameter(parameter, default))
            if i == last_positional:
                found.append("/")
        if a.vararg:
            found.append("*" + self.parameter(a.vararg, None))
        elif a.kwonlyargs:
            found.append("*")
        found += [self.parameter(p, default) for p, default in zip(a.kwonlyargs, a.kw_defaults)]
        if a.kwarg:
            found.append("**" + self.parameter(a.kwarg, None))
        return found

    def parameter(self, parameter: ast.arg, default: ast.expr | None) -> str:
        text = f"{parameter.arg}: {self.type(parameter.annotation)}"
        return text if default is None else f"{text} = {literal(default)}"

    def function(self, function: ast.FunctionDef, indent: str = "", in_class: bool = False) -> None:
        parts = self.parameter_list(function, in_class)
        start, end = f"{indent}def {function.name}(", f") -> {self.type(function.returns)}: ..."
        line = start + ", ".join(parts) + end
        if len(line) <= WIDTH:
            self.lines.append(line)
            return
        self.lines.append(start)
        one_line = f"{indent}    {', '.join(parts)}"
        if len(one_line) <= WIDTH:
            self.lines.append(one_line)
        else:
            self.lines += [f"{indent}    {part}," for part in parts]
        self.lines.append(indent + end)

    def overloads(self, name: str, doc: str, indent: str = "", decorator: str = "") -> None:
        found = signatures(name, doc)
        for function in found:
            if len(found) > 1:
                self.lines.append(f"{indent}@{self.imported('typing', 'overload')}")
            if decorator:
                self.lines.append(f"{indent}@{decorator}")
            self.function(function, indent, in_class=bool(indent) and not decorator)

    # Classes.

    def add_class(self, cls: type) -> None:
        bases = [
            self.named(f"{b.__module__}.{b.__name__}")
            for b in cls.__bases__
            if b.__name__ != "pybind11_object"
        ]
        self.lines.append(f"class {cls.__name__}{'(' + ', '.join(bases) + ')' if bases else ''}:")
        before = len(self.lines)
        for name, member in vars(cls).items():
            if name in IGNORED or name.startswith("_pybind11"):
                continue
            if not isinstance(member, types.WrapperDescriptorType):  # every class has these slots
                self.add_member(cls, name, member)
        if len(self.lines) == before:
            self.lines.append("    ...")
        self.lines.append("")

    def add_member(self, cls: type, name: str, member: Any) -> None:
        indent = "    "
        if isinstance(member, property):
            function = parse((member.fget.__doc__ or "").split("\n")[0])
            self.lines += [
                f"{indent}@property",
                f"{indent}def {name}(self) -> {self.type(function.returns)}: ...",
            ]
        elif name == "__hash__" and member is None:
            self.imported("typing", "ClassVar")
            ignore = "" if cls.__base__.__hash__ is None else "  # type: ignore[assignment]"
            self.lines.append(f"{indent}__hash__: ClassVar[None]{ignore}")
        elif name in DATA_MODEL:
            self.function(parse(name + DATA_MODEL[name].format(name=cls.__name__)), indent, in_class=True)
        elif isinstance(member, staticmethod):
            self.overloads(name, member.__func__.__doc__ or "", indent, "staticmethod")
        elif callable(member):
            self.overloads(name, member.__doc__ or "", indent)
        else:
            raise SystemExit(f"{cls.__name__}.{name}: unknown kind of member")

    def text(self) -> str:
        def imported(wanted: Callable[[str], bool]) -> list[str]:
            return [
                f"from {m} import {', '.join(sorted(self.names[m]))}" for m in sorted(self.names) if wanted(m)
            ]

        def is_standard(module: str) -> bool:
            return module.split(".")[0] in sys.stdlib_module_names

        head = imported(is_standard)
        head += [""] + [f"import {module} as {ALIASES[module]}" for module in sorted(self.modules)]
        head += imported(lambda m: m[0] != "." and not is_standard(m))
        head += [""] + imported(lambda m: m[0] == ".")
        body = "\n".join([*head, "", *self.lines]).strip("\n")
        return HEADER + "\n" + re.sub(r"\n{3,}", "\n\n", body) + "\n"


def literal(node: ast.expr) -> str:
    """A literal in the style of formatters."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and '"' not in node.value:
        return '"' + repr(node.value)[1:-1] + '"'
    if isinstance(node, ast.List):
        return "[" + ", ".join(map(literal, node.elts)) + "]"
    if isinstance(node, ast.Tuple):
        return "(" + ", ".join(map(literal, node.elts)) + ")"
    if isinstance(node, ast.Name) and node.id in ("nan", "inf"):  # the `repr` of these floats
        return f'float("{node.id}")'
    return ast.unparse(node)


def value_type(value: object) -> str:
    """The type of a module's constant."""
    kind = type(value).__name__
    if isinstance(value, dict) and value:
        key, item = next(iter(value.items()))
        return f"dict[{value_type(key)}, {value_type(item)}]"
    if isinstance(value, list) and value:
        return f"list[{value_type(value[0])}]"
    return kind


def members(module: types.ModuleType) -> Iterator[tuple[str, Any]]:
    for name, member in vars(module).items():
        if name == "__version__" or not name.startswith("__"):
            yield name, member


def stubs(core: types.ModuleType) -> dict[str, str]:
    """The texts of the files, by file name."""
    parts = {name: part for name, part in members(core) if isinstance(part, types.ModuleType)}
    classes: dict[str, list[str]] = {}
    for part_name, part in parts.items():
        for name, member in members(part):
            if isinstance(member, type):
                classes.setdefault(name, []).append(part_name)
    files = {}
    for file, module in {"__init__": core, **parts}.items():
        stub = Module(file, classes)
        if module is core:
            stub.lines += [*(f"from . import {name} as {name}" for name in sorted(parts)), ""]
        for name, member in members(module):
            if not isinstance(member, types.ModuleType) and not callable(member):
                stub.lines.append(f"{name}: {value_type(member)}")
        if stub.lines:
            stub.lines.append("")
        for _, member in members(module):
            if isinstance(member, type):
                stub.add_class(member)
        for name, member in members(module):
            if callable(member) and not isinstance(member, type):
                stub.overloads(name, member.__doc__ or "")
        files[file + ".pyi"] = stub.text()
    return files


def main() -> int:
    arguments = argparse.ArgumentParser(description="Writes the stubs of the extension.")
    arguments.add_argument("--check", action="store_true", help="print differences instead of writing")
    check = arguments.parse_args().check
    os.environ["GPUSCHED_TYPED_SIGNATURES"] = "1"
    from gpusched import _core

    wanted = stubs(_core)
    committed = {path.name: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.pyi"))}
    if check:
        for name in sorted({*wanted, *committed}):
            sys.stdout.writelines(
                difflib.unified_diff(
                    committed.get(name, "").splitlines(keepends=True),
                    wanted.get(name, "").splitlines(keepends=True),
                    f"committed/{name}",
                    f"generated/{name}",
                )
            )
        return int(wanted != committed)
    FOLDER.mkdir(exist_ok=True)
    for name in committed.keys() - wanted.keys():
        (FOLDER / name).unlink()
    for name, text in wanted.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
