"""No two modules of the package import each other, at whatever place: whoever reads one need not know the other."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import gpusched
import pytest

PACKAGE = Path(gpusched.__file__).parent


def name_of(path: Path) -> str:
    parts = ("gpusched", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def statements(tree: ast.AST) -> Iterator[ast.ImportFrom]:
    """All imports from modules of the package, but those for type checkers alone."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.ImportFrom) and child.level > 0:
            yield child
        yield from statements(child)


def imports(path: Path, modules: set[str]) -> set[str]:
    package = name_of(path).split(".") if path.name == "__init__.py" else name_of(path).split(".")[:-1]
    found = set()
    for statement in statements(ast.parse(path.read_text())):
        base = ".".join([*package[: len(package) - statement.level + 1], *([statement.module] if statement.module else [])])
        for alias in statement.names:
            module = f"{base}.{alias.name}"
            found.add(module if module in modules else base)
    return found & modules


def graph() -> dict[str, set[str]]:
    paths = {name_of(p): p for p in PACKAGE.rglob("*.py")}
    return {name: imports(path, set(paths)) - {name, "gpusched"} for name, path in paths.items()}


def test_no_module_imports_one_that_imports_it() -> None:
    modules = graph()
    assert "gpusched._views.tables" in modules["gpusched.fragmentation"]  # imports are found at all
    assert "gpusched._drawing.fragmentation_bars" in modules["gpusched._views.report"]  # also within functions
    tuple(TopologicalSorter(modules).static_order())


def test_circles_are_found() -> None:
    with pytest.raises(CycleError):
        tuple(TopologicalSorter({"a": {"b"}, "b": {"a"}}).static_order())


def test_dir_is_what_the_package_offers():
    assert dir(gpusched) == sorted(gpusched.__all__)
    assert not {"Any", "TYPE_CHECKING", "importlib"} & set(dir(gpusched))


def test_dir_of_rooms_has_what_is_imported_at_the_first_use():
    """For completion in interactive sessions."""
    assert {"read_asi_hour", "read_asi_figures", "read_openb"} <= set(dir(gpusched.io)) == set(gpusched.io.__all__)
    assert {"generate_asi_tables", "replay"} <= set(dir(gpusched.sim)) == set(gpusched.sim.__all__)
