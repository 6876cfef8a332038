# SPDX-License-Identifier: Apache-2.0
"""Which tests need a solver of mixed-integer programs."""

from __future__ import annotations

import gpusched as gs
import pytest


def needs_solver() -> None:
    """Skips the test if no solver is installed."""
    try:
        import highspy  # noqa: F401
    except ImportError:
        if not gs.milp.available_solvers():
            pytest.skip("no solver")
