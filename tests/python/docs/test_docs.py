# SPDX-License-Identifier: Apache-2.0
"""The examples of the documentation run, and its links lead somewhere."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import shutil
import subprocess
import zipfile
from pathlib import Path

import gpusched as gs
import pytest
from gpusched import cli

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.S | re.M)


def pages_with(language: str) -> list[object]:
    found = [pytest.param(page, id=page.name) for page in PAGES if blocks(page, language)]
    assert found
    return found


@pytest.fixture(scope="session")
def asi(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("pyarrow")
    folder: Path = tmp_path_factory.mktemp("asi")
    gs.sim.generate_asi_tables(folder, servers=60)
    return folder


@pytest.fixture
def work(tmp_path: Path, asi: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the examples read."""
    gs.sim.generate_cluster(nodes=50).to_json(tmp_path / "cluster.json")
    (tmp_path / "nodes.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\nn0,96000,100000,4,T4\n")
    pods = "".join(f"p{i},1000,1000,1,1000\n" for i in range(6))
    (tmp_path / "pods.csv").write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\n" + pods)
    dump = runpy.run_path(str(ROOT / "examples" / "kubernetes_dump.py"))["dump"]
    (tmp_path / "all.json").write_text(json.dumps(dump()))
    samples = ROOT / "tests" / "golden" / "io"
    for sample in sorted((samples / "slurm").glob("*.*")):
        shutil.copy(sample, tmp_path)
    with zipfile.ZipFile(tmp_path / "snapshot.zip", "w") as archive:
        archive.write(samples / "kai" / "snapshot.json", "snapshot.json")
    (tmp_path / "tables").symlink_to(asi)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", pages_with("python"))
def test_python_runs(page: Path, work: Path) -> None:
    """The blocks of a page, one after the other, as a reader would try them."""
    names: dict[str, object] = {}
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), names)
    if page.name == "python.md":  # the policy of the page places what fits
        result = names["result"]
        assert isinstance(result, gs.sim.ReplayResult) and len(result.unplaced) == 2


@pytest.mark.parametrize("page", pages_with("sh"))
def test_shell_runs(page: Path, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Blocks marked `sh` prepare files and call the console script, one call a line."""
    printed: set[str] = set()
    for block in blocks(page, "sh"):
        files, first, calls = re.split(r"^(gpusched )", block, maxsplit=1, flags=re.M)
        subprocess.run(["bash", "-e", "-c", files], check=True)
        for call in (first + calls).splitlines():
            words = shlex.split(re.sub(r" (\|.*|2>&1)$", "", call))
            status = cli.main(words[1:])
            out, err = capsys.readouterr()
            assert out and (status == 0 or "||" in call), (call, err)
            assert err == "" or "2>&1" in call, (call, err)
            printed |= set((out + err).splitlines())
    shown = [line for block in blocks(page, "text") for line in block.splitlines()]
    assert [line for line in shown if line not in printed] == []


def anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def text_of(page: Path) -> str:
    """The page without blocks and spans of code."""
    return re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.S)


@pytest.mark.parametrize(
    "page", [pytest.param(p, id=p.name) for p in (*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md")]
)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", text_of(page)):
        path, _, part = link.partition("#")
        if "://" in link or link.startswith("mailto:"):
            continue
        target = page.parent / path if path else page
        assert target.exists(), link
        if part and target.suffix == ".md":
            headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.M)
            assert part in map(anchor, headings), link
