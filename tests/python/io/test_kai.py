# SPDX-License-Identifier: Apache-2.0
"""Reading a snapshot of KAI-Scheduler: from its archive, its file and its document, and from the console."""

import json
import zipfile
from pathlib import Path

import gpusched as gs
import pytest
from gpusched import cli
from messages import refuses

SAMPLE = Path(__file__).parents[2] / "golden" / "io" / "kai" / "snapshot.json"
DOCUMENT = json.loads(SAMPLE.read_text())


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "snapshot.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("snapshot.json", SAMPLE.read_text())
    return path


def test_archive_file_and_document_are_one_cluster(archive):
    reading = gs.io.read_kai_snapshot(archive)
    assert gs.io.read_kai_snapshot(SAMPLE) == reading
    assert gs.io.read_kai_snapshot(str(archive)) == reading
    assert gs.io.read_kai_snapshot(DOCUMENT) == reading
    tasks = {task.name: task for task in reading.cluster.tasks}
    assert tasks["ml/serve-0"].gpus == tasks["ml/serve-1"].gpus
    assert tasks["ml/wide-0"].job == "ml/wide"
    rows = {(row.kind, row.what): row for row in reading.report.rows}
    assert (rows["Queue", "objects"].errs, rows["Queue", "objects"].count) == ("too_lax", 2)


def test_options_are_those_of_kubernetes(archive):
    assert not gs.io.read_kai_snapshot(archive, schedulers=["other"]).cluster.tasks.preemptible.any()
    assert gs.io.read_kai_snapshot(archive).cluster.tasks.preemptible.any()
    with refuses("examples -1 0 1000"):
        gs.io.read_kai_snapshot(archive, examples=-1)


def test_messages_about_other_files_name_their_content(tmp_path, archive):
    other = tmp_path / "other.zip"
    with zipfile.ZipFile(other, "w") as out:
        out.writestr("a.txt", "a")
    with refuses("expected a zip archive with snapshot.json, found 1 other"):
        gs.io.read_kai_snapshot(other)
    cut = tmp_path / "cut.zip"
    cut.write_bytes(other.read_bytes()[:-30])
    with refuses("cut.zip: expected a readable zip archive"):
        gs.io.read_kai_snapshot(cut)
    broken = tmp_path / "broken.zip"
    content = bytearray(archive.read_bytes())
    content[60:90] = bytes(30)
    broken.write_bytes(content)
    with pytest.raises(gs.InvalidInput, match="broken.zip: expected a readable zip archive"):
        gs.io.read_kai_snapshot(broken)
    with refuses("rawObjects without them"):
        gs.io.read_kai_snapshot({})
    with pytest.raises(gs.BackendError):
        gs.io.read_kai_snapshot(tmp_path / "missing.zip")
    with refuses("path: 3; expected a path"):
        gs.io.read_kai_snapshot(3)


def test_the_console_imports(tmp_path, archive, capsys):
    out = str(tmp_path / "cluster.json")
    assert cli.main(["import", "kai", str(archive), "-o", out]) == 0
    assert "4 nodes, 24 GPUs" in capsys.readouterr().out
    assert gs.Cluster.from_json(out) == gs.io.read_kai_snapshot(archive).cluster
    assert cli.main(["import", "kai", str(archive), str(SAMPLE), "-o", out]) == 2
    assert "expected one snapshot" in capsys.readouterr().err
    assert cli.main(["import", "kai", str(archive), "-o", out, "--array-tasks", "3"]) == 2
    assert "--array-tasks: not an option of import kai" in capsys.readouterr().err
