# SPDX-License-Identifier: Apache-2.0
"""Packages that only some calls need: the message about a missing one says how to install it."""

import sys

import gpusched as gs
import gpusched.plotting
import pytest
from messages import naming


@pytest.mark.parametrize(
    ("module", "extra", "call"),
    [
        ("pandas", "io", lambda c: c.to_pandas()),
        ("pandas", "io", lambda c: gs.fragmentation.report(c, shapes=[(1, 8)]).to_pandas()),
        ("matplotlib.pyplot", "plot", lambda c: gs.plotting.plot_occupancy(c)),
    ],
)
def test_missing_packages_are_named(monkeypatch, module, extra, call):
    cluster = gs.sim.generate_cluster(nodes=20)
    monkeypatch.setitem(sys.modules, module, None)  # what importing it then meets
    package = module.partition(".")[0]
    with pytest.raises(
        gs.BackendError, match=naming(f"needs {package}: pip install {package} (or the extra '{extra}'")
    ):
        call(cluster)
