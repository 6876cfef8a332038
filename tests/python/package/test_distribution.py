# SPDX-License-Identifier: Apache-2.0
"""The other project called gpusched, in one environment with this one: before it, after it, and removed
again.
"""

import base64
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import gpusched as gs
import pytest
from messages import mentions

PACKAGE = Path(gs.__file__).parent
OTHERS = {
    "__init__.py": '__version__ = "0.4.0"\n',
    "allocation.py": "class AllocOptions: ...\n",
    "cli.py": "def main():\n    print('the other one')\n",
    "backend.py": "",
}


def install(site: Path, distribution: str, files: dict[str, bytes]) -> None:
    """As pip does: whatever was there is overwritten."""
    rows = []
    for name, content in files.items():
        path = site / "gpusched" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_bytes(content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.append(f"gpusched/{name},sha256={digest},{len(content)}")
    info = site / f"{distribution}.dist-info"
    info.mkdir()
    rows.append(f"{info.name}/RECORD,,")
    (info / "RECORD").write_text("\n".join(rows) + "\n")


def install_ours(site: Path) -> None:
    files = {str(path.relative_to(PACKAGE)): path.read_bytes() for path in PACKAGE.rglob("*.py")}
    install(site, "gpusched_algorithms-0.1.0", files)
    for path in PACKAGE.glob("_core*.so"):
        (site / "gpusched" / path.name).symlink_to(path)


def install_other(site: Path) -> None:
    install(site, "gpusched-0.4.0", {name: text.encode() for name, text in OTHERS.items()})


IMPORT_EACH = """
import importlib, sys
import gpusched.errors
for name in sys.argv[1:]:
    try:
        importlib.import_module("gpusched." + name)
    except ImportError as error:
        print(name, *str(error).split())
"""


def run(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(site), "PYTHONSAFEPATH": "1"}
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, cwd=site, check=False
    )


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return tmp_path


def test_alone_nothing_is_said(site):
    install_ours(site)
    done = run(site, "-W", "error", "-c", "import gpusched as gs; print(gs.__file__, gs.Cluster.__name__)")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(site / "gpusched" / "__init__.py"), "Cluster"]


def test_other_before_ours_warns_and_works(site):
    install_other(site)
    install_ours(site)
    done = run(site, "-c", "import gpusched as gs; print(len(gs.sim.generate_cluster(nodes=20).nodes))")
    assert (done.returncode, done.stdout) == (0, "20\n")
    assert "RuntimeWarning: gpusched-algorithms shares" in done.stderr
    assert "gpusched 0.4.0" in done.stderr
    assert "pip uninstall gpusched gpusched-algorithms" in done.stderr


@pytest.mark.parametrize(
    "arguments", [("-c", "import gpusched.consolidation"), ("-m", "gpusched", "--version")]
)
def test_other_after_ours_is_an_import_error(site, arguments):
    install_ours(site)
    install_other(site)
    done = run(site, *arguments)
    assert done.returncode != 0
    assert mentions(done.stderr, "ImportError: gpusched-algorithms: files in")
    assert "the distribution gpusched 0.4.0" in done.stderr
    assert "pip uninstall gpusched gpusched-algorithms" in done.stderr
    assert "replaced: gpusched/__init__.py, gpusched/allocation.py, gpusched/cli.py" in done.stderr


def test_every_public_module_reports_it(site):
    install_ours(site)
    install_other(site)
    files = [path for path in PACKAGE.glob("[a-z]*.py") if path.name not in OTHERS]
    modules = {path.stem for path in files} | {
        path.parent.name for path in PACKAGE.glob("[a-z]*/__init__.py")
    }
    modules.remove("errors")  # Python alone, without the compiled part
    assert len(modules) > 10
    done = run(site, "-c", IMPORT_EACH, *sorted(modules))
    lines = done.stdout.splitlines()
    assert len(lines) == len(modules), done.stderr
    for module, line in zip(sorted(modules), lines):
        assert mentions(line, f"{module} gpusched-algorithms: files in"), line


def test_other_removed_again_leaves_holes(site):
    install_ours(site)
    install_other(site)
    for name in OTHERS:
        (site / "gpusched" / name).unlink()
    for path in (site / "gpusched-0.4.0.dist-info").iterdir():
        path.unlink()
    (site / "gpusched-0.4.0.dist-info").rmdir()
    # Without site-packages: a whole package installed there would be found before what is left of this one.
    done = run(site, "-S", "-m", "gpusched", "--version")
    assert done.returncode != 0
    assert "missing: gpusched/__init__.py, gpusched/allocation.py, gpusched/cli.py" in done.stderr
    assert "pip install ." in done.stderr
    # Without __init__.py Python takes the folder for a namespace package, and runs nothing of it.
    done = run(site, "-S", "-c", "import gpusched as gs; print(gs.__file__); gs.Cluster")
    assert done.stdout == "None\n"
    assert mentions(done.stderr, "AttributeError: module 'gpusched' has no attribute 'Cluster'")
    done = run(site, "-S", "-c", "from gpusched import milp")
    assert mentions(done.stderr, "ImportError: gpusched-algorithms: files in")
