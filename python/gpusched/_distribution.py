"""Checks that the files of this package are its own.

Another project on PyPI, a queue for the GPUs of one machine, is called `gpusched` as well and installs a package and a
command of that name. In one environment the two overwrite each other's files. The extension module runs this check when
it is loaded, because the other project has no such module, and may have replaced every other file.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping

DISTRIBUTION = "gpusched-algorithms"
"""The name under which pip installs this package."""

_OWN_PREFIX = "gpusched_algorithms-"
_OTHER_PREFIX = "gpusched-"


def require_own_files(site: str | None = None) -> None:
    """Raises ImportError where another distribution has replaced or removed files of this one, and warns where it may.

    Parameters
    ----------
    site
        the folder that holds the package; default: the one of this file
    """
    if site is None:
        site = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    installed = [name for name in os.listdir(site) if name.endswith(".dist-info")]
    own = next((name for name in installed if name.startswith(_OWN_PREFIX)), None)
    if own is None or not os.path.isfile(os.path.join(site, own, "RECORD")):
        return  # not installed by pip: a folder of a build, which nobody else writes to
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
    culprit = f"the distribution {' and '.join(others)}" if others else "a distribution that has been removed"
    remedy = (
        "use an environment for each, or remove both (pip uninstall gpusched " + DISTRIBUTION + ") and install this one "
        "again from its sources (pip install .)"
    )
    if missing or replaced:
        found = (("replaced", replaced), ("missing", missing))
        told = [f"{how}: {', '.join(sorted(names))}" for how, names in found if names]
        raise ImportError(
            f"{DISTRIBUTION}: files in {package} were changed by {culprit}, another project whose package is called "
            f"gpusched as well ({'; '.join(told)}): {remedy}"
        )
    if others:
        warnings.warn(
            f"{DISTRIBUTION} shares {package} with {culprit}, another project whose package is called gpusched as well. "
            f"This one works; the other one does not, and removing it takes files of this one along: {remedy}",
            RuntimeWarning,
            stacklevel=1,
        )


def _record(site: str, distribution: str) -> Mapping[str, str]:
    """The installed files of a distribution that belong to the package, with their hashes as pip wrote them."""
    import csv

    with open(os.path.join(site, distribution, "RECORD"), encoding="utf-8", newline="") as file:
        return {row[0]: row[1] for row in csv.reader(file) if len(row) == 3 and row[0].startswith("gpusched/") and row[1]}


def _hash(site: str, name: str) -> str:
    """As a RECORD has it."""
    import base64
    import hashlib

    with open(os.path.join(site, name), "rb") as file:
        digest = hashlib.sha256(file.read()).digest()
    return "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
