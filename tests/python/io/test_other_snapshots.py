# SPDX-License-Identifier: Apache-2.0
"""Every command that takes a snapshot recognises those of other systems, and names the import that reads
them.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import gpusched as gs
import pytest
from gpusched import cli

SAMPLES = Path(__file__).resolve().parents[2] / "golden" / "io"
LIST = {"apiVersion": "v1", "kind": "List", "items": []}
COMMANDS = (
    "report FILE",
    "consolidate FILE",
    "preempt FILE t",
    "allocate FILE j",
    "admit FILE j",
    "verify FILE PLAN",
    "explain FILE PLAN n",
    "export PLAN --to koordinator --cluster FILE",
    "topology show FILE",
    "anonymize FILE OUT",
    "plot occupancy FILE -o OUT.png",
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, str]]:
    """By what it is: the file, and the import that reads it."""
    folder = tmp_path_factory.mktemp("snapshots")
    (folder / "all.json").write_text(json.dumps(LIST))
    (folder / "all.yaml").write_text("apiVersion: v1\nkind: List\nitems: []\n")
    with zipfile.ZipFile(folder / "snapshot.zip", "w") as archive:
        archive.write(SAMPLES / "kai" / "snapshot.json", "snapshot.json")
    return {
        "a List": (str(folder / "all.json"), "kubernetes"),
        "YAML": (str(folder / "all.yaml"), "kubernetes"),
        "an archive of KAI": (str(folder / "snapshot.zip"), "kai"),
        "JSON of KAI": (str(SAMPLES / "kai" / "snapshot.json"), "kai"),
        "text of scontrol": (str(SAMPLES / "slurm" / "nodes.txt"), "slurm"),
        "JSON of scontrol": (str(SAMPLES / "slurm" / "cluster-v0.0.43.json"), "slurm"),
    }


KINDS = ("a List", "YAML", "an archive of KAI", "JSON of KAI", "text of scontrol", "JSON of scontrol")


@pytest.mark.parametrize(
    ("command", "kind"),
    [*((command, KINDS[0]) for command in COMMANDS), *((COMMANDS[0], kind) for kind in KINDS[1:])],
)
def test_every_command_names_the_import(
    command: str,
    kind: str,
    files: dict[str, tuple[str, str]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path, system = files[kind]
    plan = tmp_path / "plan.json"
    plan.write_text(
        json.dumps({"format": "gpusched.plan", "version": 1, "waves": 0, "moves": [], "vacated_nodes": []})
    )
    words = {
        "FILE": path,
        "PLAN": str(plan),
        "OUT": str(tmp_path / "out.json"),
        "OUT.png": str(tmp_path / "out.png"),
    }
    assert cli.main([words.get(word, word) for word in command.split()]) == 2
    assert f"`gpusched import {system}`" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["plan.json"]


def test_documents_are_recognised_too() -> None:
    with pytest.raises(gs.InvalidInput, match="gpusched import kubernetes"):
        gs.Cluster.from_json(LIST)
    with pytest.raises(gs.InvalidInput, match="gpusched import kubernetes"):
        gs.io.read_kai_snapshot(LIST)
