# SPDX-License-Identifier: Apache-2.0
"""The JSON Schemas: they agree with the library's readers about the stored documents, and accept what it
writes.
"""

import json

import gpusched as gs
import pytest
from messages import refuses
from schemas import cases, validator

VERSIONS = [("cluster", 1), ("cluster", 2), ("plan", 1), ("plan", 2)]


def rows(*files):
    return [
        pytest.param(file.split("_")[0], text, expected, id=f"{file.removesuffix('.txt')}: {name}")
        for file in files
        for name, text, expected in cases(file)
    ]


def is_valid(kind, text):
    """Whether some version's schema accepts the document: each accepts only its own."""
    return any(
        validator(f"{kind}.v{version}").is_valid(json.loads(text))
        for known, version in VERSIONS
        if known == kind
    )


def read(kind, text, tmp_path):
    """What the library makes of the text in a file."""
    path = tmp_path / "document.json"
    path.write_text(text, encoding="utf-8")
    return {"cluster": gs.Cluster, "plan": gs.Plan}[kind].from_json(path)


@pytest.mark.parametrize(("kind", "version"), VERSIONS)
def test_schema_is_a_schema(kind, version):
    found = validator(f"{kind}.v{version}")
    found.check_schema(found.schema)


@pytest.mark.parametrize(("kind", "text", "expected"), rows("cluster_valid.txt", "plan_valid.txt"))
def test_valid_documents(kind, text, expected, tmp_path):
    assert is_valid(kind, text)
    assert validator(f"{kind}.v2").is_valid({**json.loads(text), "version": 2})  # holds all of version 1
    written = json.dumps(read(kind, text, tmp_path).to_json())
    assert is_valid(kind, written)
    assert json.dumps(read(kind, written, tmp_path).to_json()) == written


@pytest.mark.parametrize(
    ("kind", "text", "expected"), rows("cluster_malformed.txt", "cluster_illegal.txt", "plan_malformed.txt")
)
def test_schema_and_library_reject_the_same_documents(kind, text, expected, tmp_path):
    # That a level is one that the document lists elsewhere is more than a schema can say.
    elsewhere = kind == "cluster" and "/level" in expected and "label_levels" in expected
    assert is_valid(kind, text) == elsewhere
    with refuses(expected):
        read(kind, text, tmp_path)


@pytest.mark.parametrize(("kind", "text", "expected"), rows("cluster_inconsistent.txt"))
def test_only_the_library_rejects_inconsistent_clusters(kind, text, expected, tmp_path):
    assert is_valid(kind, text)
    with refuses(expected):
        read(kind, text, tmp_path)


@pytest.mark.parametrize("preset", ["asi", "openb", "flextopo-4090", "constrained"])
def test_generated_clusters_and_their_plans(preset, tmp_path):
    cluster = gs.sim.generate_cluster(preset=preset, nodes=60, seed=3)
    path = tmp_path / "cluster.json"
    cluster.to_json(path)
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document == cluster.to_json()
    plan = gs.consolidate(cluster, preset="fast", seed=1).to_json()
    for kind, written in (("cluster", document), ("plan", plan)):
        found = validator(f"{kind}.v{written['version']}").iter_errors(written)
        assert [error.message for error in found] == []
