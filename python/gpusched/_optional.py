"""Packages that only some calls need."""

from __future__ import annotations

import importlib
from typing import Any

from .errors import BackendError


def require(module: str, extra: str) -> Any:
    """The module, or an error that says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise BackendError(
            f"this call needs {package}: pip install {package} (or the extra {extra!r} of gpusched-algorithms; {error})"
        ) from None
