# SPDX-License-Identifier: Apache-2.0
"""The JSON Schemas of the documents, and the stored cases of documents."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "schema"
CASES = Path(__file__).resolve().parents[1] / "golden" / "io"


def cases(file: str) -> list[tuple[str, str, str | None]]:
    """Every stored case of a file: its name, the document, and what the message about it must mention."""
    found = []
    for block in (CASES / file).read_text(encoding="utf-8").split("\n--- ")[1:]:
        lines = block.strip().split("\n")
        expected = next((line[8:] for line in lines if line.startswith("expect: ")), None)
        found.append((lines[0], lines[-1], expected))
    return found


@functools.cache
def validator(name: str) -> Draft202012Validator:
    """By name and version: `serving-plan.v2`."""
    schemas = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.json")}
    others: Registry[Any] = Registry().with_resources(
        (schema["$id"], Resource.from_contents(schema)) for schema in schemas.values()
    )
    return Draft202012Validator(schemas[f"gpusched.{name}.schema.json"], registry=others)
