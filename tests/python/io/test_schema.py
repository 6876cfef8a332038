"""The JSON Schemas: they agree with the library's readers about the stored documents, and accept what it
writes.
"""

import json
from pathlib import Path

import gpusched as gs
import jsonschema
import pytest
from messages import refuses

ROOT = Path(__file__).resolve().parents[3]
DOCUMENTS = ROOT / "tests" / "golden" / "io"


VERSIONS = [("cluster", 1), ("cluster", 2), ("plan", 1), ("plan", 2)]


def schema(kind, version=1):
    text = (ROOT / "docs" / "schema" / f"gpusched.{kind}.v{version}.schema.json").read_text(encoding="utf-8")
    return jsonschema.Draft202012Validator(json.loads(text))


def cases(*files):
    """Every stored case: the document as text, and what the message about it must mention."""
    found = []
    for file in files:
        for block in (DOCUMENTS / file).read_text(encoding="utf-8").split("\n--- ")[1:]:
            lines = block.strip().split("\n")
            expected = next((line[8:] for line in lines if line.startswith("expect: ")), None)
            found.append(pytest.param(lines[-1], expected, id=f"{file.removesuffix('.txt')}: {lines[0]}"))
    return found


def is_valid(kind, text):
    """Whether some version's schema accepts the document: each accepts only its own."""
    return any(
        schema(kind, version).is_valid(json.loads(text)) for known, version in VERSIONS if known == kind
    )


def read(kind, text, tmp_path):
    """What the library makes of the text in a file."""
    path = tmp_path / "document.json"
    path.write_text(text, encoding="utf-8")
    return {"cluster": gs.Cluster, "plan": gs.Plan}[kind].from_json(path)


@pytest.mark.parametrize(("kind", "version"), VERSIONS)
def test_schema_is_a_schema(kind, version):
    validator = schema(kind, version)
    validator.check_schema(validator.schema)


@pytest.mark.parametrize(("text", "expected"), cases("cluster_valid.txt"))
def test_version_2_holds_all_of_version_1(text, expected):
    document = json.loads(text)
    assert schema("cluster", 2).is_valid({**document, "version": 2})


@pytest.mark.parametrize(("text", "expected"), cases("plan_valid.txt"))
def test_version_2_of_plans_holds_all_of_version_1(text, expected):
    document = json.loads(text)
    assert schema("plan", 2).is_valid({**document, "version": 2})


@pytest.mark.parametrize(("text", "expected"), cases("cluster_valid.txt"))
def test_valid_clusters(text, expected, tmp_path):
    check_valid("cluster", text, tmp_path)


@pytest.mark.parametrize(("text", "expected"), cases("plan_valid.txt"))
def test_valid_plans(text, expected, tmp_path):
    check_valid("plan", text, tmp_path)


def check_valid(kind, text, tmp_path):
    assert is_valid(kind, text)
    written = json.dumps(read(kind, text, tmp_path).to_json())
    assert is_valid(kind, written)
    assert json.dumps(read(kind, written, tmp_path).to_json()) == written


@pytest.mark.parametrize(("text", "expected"), cases("cluster_malformed.txt", "cluster_illegal.txt"))
def test_schema_and_library_reject_the_same_clusters(text, expected, tmp_path):
    # That a level is one that the document lists elsewhere is more than a schema can say.
    assert is_valid("cluster", text) == ("/level" in expected and "label_levels" in expected)
    check_rejected("cluster", text, expected, tmp_path)


@pytest.mark.parametrize(("text", "expected"), cases("plan_malformed.txt"))
def test_schema_and_library_reject_the_same_plans(text, expected, tmp_path):
    assert not is_valid("plan", text)
    check_rejected("plan", text, expected, tmp_path)


@pytest.mark.parametrize(("text", "expected"), cases("cluster_inconsistent.txt"))
def test_only_the_library_rejects_inconsistent_clusters(text, expected, tmp_path):
    assert is_valid("cluster", text)
    check_rejected("cluster", text, expected, tmp_path)


def check_rejected(kind, text, expected, tmp_path):
    with refuses(expected):
        read(kind, text, tmp_path)


@pytest.mark.parametrize("preset", ["asi", "openb", "flextopo-4090", "constrained"])
def test_generated_clusters_and_their_plans(preset, tmp_path):
    cluster = gs.sim.generate_cluster(preset=preset, nodes=60, seed=3)
    path = tmp_path / "cluster.json"
    cluster.to_json(path)
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document == cluster.to_json()
    assert [error.message for error in schema("cluster", document["version"]).iter_errors(document)] == []
    plan = gs.consolidate(cluster, preset="fast", seed=1)
    written = plan.to_json()
    assert [error.message for error in schema("plan", written["version"]).iter_errors(written)] == []
