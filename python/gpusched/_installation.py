# SPDX-License-Identifier: Apache-2.0
"""Checks that no other distribution has overwritten the files of this package.

Another project on PyPI, a queue for the GPUs of one machine, also installs a package and a command called
`gpusched`. In one environment, the two overwrite each other's files. The extension module runs this check
when it is loaded: it is the only file that the other project cannot have replaced.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping

DISTRIBUTION = "gpusched-algorithms"
"""The name of this package on PyPI."""

_OWN_PREFIX = "gpusched_algorithms-"
_OTHER_PREFIX = "gpusched-"


def require_own_files(site: str | None = None) -> None:
    """Raises ImportError if another distribution has replaced or removed files of this one; warns if it
    shares them.

    Parameters
    ----------
    site
        the folder that contains the package; by default the folder of this file
    """
    if site is None:
        site = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    installed = [name for name in os.listdir(site) if name.endswith(".dist-info")]
    own = next((name for name in installed if name.startswith(_OWN_PREFIX)), None)
    if own is None or not os.path.isfile(os.path.join(site, own, "RECORD")):
        return  # a build folder: pip did not install it, so no distribution overwrites it
    recorded = _record(site, own)
    others = {}
    for name in installed:
        if name.startswith(_OTHER_PREFIX) and os.path.isfile(os.path.join(site, name, "RECORD")):
            shared = _record(site, name).keys() & recorded.keys()
            if shared:
                others[name.removesuffix(".dist-info").replace("-", " ")] = shared
    sources = {name for name in recorded if name.endswith(".py")}
    missing = {name for name in sources if not os.path.isfile(os.path.join(site, name))}
    replaced = {
        name for shared in others.values() for name in shared - missing if _hash(site, name) != recorded[name]
    }
    package = os.path.join(site, "gpusched")
    other = f"the distribution {' and '.join(others)}" if others else "a distribution that has been removed"
    remedy = (
        f"use an environment for each, or remove both (pip uninstall gpusched {DISTRIBUTION}) and install "
        "this one again from its sources (pip install .)"
    )
    if missing or replaced:
        found = (("replaced", replaced), ("missing", missing))
        changes = [f"{how}: {', '.join(sorted(names))}" for how, names in found if names]
        raise ImportError(
            f"{DISTRIBUTION}: {other} changed files in {package} ({'; '.join(changes)}). It is another "
            f"project with a package called gpusched: {remedy}"
        )
    if others:
        warnings.warn(
            f"{DISTRIBUTION} shares {package} with {other}, another project with a package called gpusched. "
            f"This one works, the other does not, and removing it also removes files of this one: {remedy}",
            RuntimeWarning,
            stacklevel=1,
        )


def _record(site: str, distribution: str) -> Mapping[str, str]:
    """The files that a distribution installed into the package, with the hashes that pip recorded."""
    import csv

    with open(os.path.join(site, distribution, "RECORD"), encoding="utf-8", newline="") as file:
        rows = [row for row in csv.reader(file) if len(row) == 3 and row[1]]
    return {row[0]: row[1] for row in rows if row[0].startswith("gpusched/")}


def _hash(site: str, name: str) -> str:
    """A file's hash in the format of RECORD."""
    import base64
    import hashlib

    with open(os.path.join(site, name), "rb") as file:
        digest = hashlib.sha256(file.read()).digest()
    return "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
