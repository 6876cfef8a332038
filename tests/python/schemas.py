# SPDX-License-Identifier: Apache-2.0
"""The JSON Schemas of the documents."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "schema"


@functools.cache
def validator(name: str) -> Draft202012Validator:
    """By name and version: `serving-plan.v2`."""
    schemas = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.json")}
    others: Registry[Any] = Registry().with_resources(
        (schema["$id"], Resource.from_contents(schema)) for schema in schemas.values()
    )
    return Draft202012Validator(schemas[f"gpusched.{name}.schema.json"], registry=others)
