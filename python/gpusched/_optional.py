# SPDX-License-Identifier: Apache-2.0
"""Imports of packages that only some functions need."""

from __future__ import annotations

import importlib
from typing import Any

from .errors import BackendError


def require(module: str, extra: str) -> Any:
    """Imports a module. Raises BackendError with the command that installs it if it is missing."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise BackendError(
            f"this call needs {package}: pip install {package} (or the extra {extra!r} of "
            f"gpusched-algorithms; {error})"
        ) from None
