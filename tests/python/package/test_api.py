# SPDX-License-Identifier: Apache-2.0
"""Importing the package, its public names, their documentation, and its types."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import gpusched as gs
import pytest

ROOT = Path(__file__).resolve().parents[3]
MODULES: list[ModuleType] = [
    gs,
    *(
        importlib.import_module(f"gpusched.{name}")
        for _, name, _ in pkgutil.iter_modules(gs.__path__)
        if not name.startswith("_") and name != "cli"
    ),
]
PUBLIC = [
    (f"{module.__name__}.{name}", getattr(module, name)) for module in MODULES for name in module.__all__
]
# Objects with a state that changes: they are neither compared nor pickled.
NO_DATA = set(
    "ActivityCorrelation AdmissionQueue Autoscaler ByLinks Controller OnlinePreemption StandbyLease".split()
)


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)


def test_importing_needs_numpy_alone_and_no_drawing() -> None:
    done = run(
        "-c",
        "import sys; before = set(sys.modules); import gpusched as gs\n"
        "loaded = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(sorted(loaded - sys.stdlib_module_names), 'gpusched.plotting' in sys.modules)\n"
        "print(callable(gs.plotting.plot_waves), 'matplotlib' in sys.modules, hasattr(gs, 'no_such_name'))",
    )
    assert done.stdout == "['gpusched', 'numpy'] False\nTrue False False\n", done.stderr


def test_all_names_of_the_extension_are_public_and_listed() -> None:
    for module in MODULES:
        core = getattr(gs._core, module.__name__.partition(".")[2], None)
        if core is not None:
            assert {name for name in vars(core) if not name.startswith("_")} <= set(module.__all__), module
        if "__getattr__" in vars(module):  # names that are imported at their first use are completed as well
            assert set(module.__all__) <= set(dir(module)), module
    assert dir(gs) == sorted(gs.__all__)


def test_public_names_have_a_public_home_and_a_documentation() -> None:
    """Pickles name the module of a class, which must be one that stays."""
    assert len(PUBLIC) > 300
    for name, thing in PUBLIC:
        if not (inspect.isclass(thing) or inspect.isroutine(thing)):
            continue
        assert not any(part.startswith("_") for part in thing.__module__.split(".")), name
        assert len(inspect.getdoc(thing) or "") > 20, name
        if inspect.isroutine(thing):
            for parameter in inspect.signature(thing).parameters.values():
                keyword = parameter.kind is inspect.Parameter.KEYWORD_ONLY
                assert not keyword or parameter.name in inspect.getdoc(thing), (name, parameter.name)
            continue
        for member, value in vars(thing).items():
            if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                assert inspect.getdoc(value), f"{name}.{member}"


def classes_of(scope: Any) -> set[type]:
    inner = [value for value in vars(scope).values() if isinstance(value, ModuleType)]
    classes = {value for value in vars(scope).values() if isinstance(value, type)}
    return classes.union(*(classes_of(module) for module in inner if module.__name__.startswith("gpusched")))


def test_results_are_shown_compared_copied_and_pickled() -> None:
    classes = classes_of(gs._core)
    assert len(classes) > 60 and {of.__name__ for of in classes} > NO_DATA
    for of in classes:
        own = {name for base in of.__mro__ if base.__module__.startswith("gpusched") for name in vars(base)}
        assert "__repr__" in own and "__reduce__" in vars(of), of
        assert ({"__setstate__", "__eq__"} <= own) == (of.__name__ not in NO_DATA), of


def test_the_committed_stubs_are_the_generated_ones() -> None:
    done = run(str(ROOT / "python" / "bindings" / "generate_stubs.py"), "--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_stubs_match() -> None:
    pytest.importorskip("mypy")
    allowed = str(ROOT / "tests" / "python" / "stubtest_allowlist.txt")
    options = ["--allowlist", allowed, "--mypy-config-file", str(ROOT / "pyproject.toml")]
    done = run("-m", "mypy.stubtest", "gpusched._core", *options)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_is_typed(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    source = tmp_path / "user.py"
    source.write_text(
        "import gpusched as gs\n"
        "cluster = gs.sim.generate_cluster(nodes=10)\n"
        "plan = gs.consolidate(cluster, preset='fast')\n"
        "reveal_type(plan.moves[0].task)\n"
        "gs.consolidate(cluster, preset='nonsense')\n"
    )
    done = run("-m", "mypy", "--strict", str(source))
    assert re.search(r'Revealed type is "(builtins\.)?str"', done.stdout), done.stdout
    assert "\"Literal['nonsense']\"" in done.stdout and "Found 1 error" in done.stdout, done.stdout
