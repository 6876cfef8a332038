# SPDX-License-Identifier: Apache-2.0
"""Compares gpusched's feasibility with kube-scheduler's own filters; tests/kubernetes/run.sh builds what it
needs.

    compare.py [--clusters 2000] [--first 0] [--sole 50] [--no-mutations] [--no-dump]

Three parts: random clusters, among which every filter must be the only one that refuses often enough; every
pod and node of a dump of a real control plane, if it is present; and mutations, each of which leaves one rule
out on our side and must be noticed. On the clusters and the dump the constraints of `why` are compared, too.
The exit status is 0 if all hold.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

import comparing
import random_clusters
from mutations import MUTATIONS

# Filters of the default profile that no generated cluster makes refuse, and why.
NEVER = {
    "NodeName": "a pod that names its node is bound",
    "NodeVolumeLimits": "limits on attached volumes are not read",
    "DynamicResources": "claims of devices are not generated",
    "NodeDeclaredFeatures": "features that nodes declare are not read",
}


def filters() -> list[str]:
    import subprocess

    return json.loads(
        subprocess.run(
            [str(comparing.ORACLE), "--plugins"], check=True, capture_output=True, text=True
        ).stdout
    )


def clusters(
    first: int, count: int, themes: tuple[str, ...] | None = None
) -> Iterator[tuple[int, comparing.Object]]:
    return ((seed, random_clusters.random_cluster(seed, themes)) for seed in range(first, first + count))


def compare_random(first: int, count: int, sole: int) -> bool:
    start = time.monotonic()
    found = comparing.compare(clusters(first, count), excused=comparing.excuses)
    print(
        f"random clusters, seeds {first} to {first + count - 1} ({time.monotonic() - start:.0f} s): "
        f"{found.report()}"
    )
    good = not found.differences
    for plugin in filters():
        if plugin not in NEVER and found.sole[plugin] < sole:
            print(
                f"  error: {plugin} alone refuses in {found.sole[plugin]} clusters, expected at least {sole}"
            )
            good = False
    return good


def compare_dump() -> bool:
    objects = comparing.dump()
    if objects is None:
        print(
            "SKIPPED: no dump of a real control plane; set GPUSCHED_DATA to the folder that holds "
            "kubernetes-1.36"
        )
        return True
    found = comparing.compare([("dump", objects)], excused=comparing.excuses)
    print(f"dump: {found.report()}")
    return compare_sets("dump", [("dump", objects)]) and not found.differences and found.feasible > 0


def compare_sets(name: str, cases: Iterable[tuple[Any, comparing.Object]]) -> bool:
    pairs, differences = comparing.compare_sets(cases)
    print(f"{name}: {pairs} pairs of pending pods and nodes, {len(differences)} with other constraints")
    print("".join(f"  {difference}\n" for difference in differences[:20]), end="")
    return pairs > 0 and not differences


def compare_mutations(count: int) -> bool:
    unnoticed = []
    for rule, (change, themes) in MUTATIONS.items():
        found = comparing.compare(
            clusters(0, count, themes),
            ours=lambda objects, change=change: comparing.ask_gpusched(comparing.changed(objects, change)),
            excused=comparing.excuses,
            until=1,
        )
        if not found.differences:
            unnoticed.append(rule)
    print(
        f"mutations: of {len(MUTATIONS)} rules that were left out on one side, "
        f"{len(MUTATIONS) - len(unnoticed)} were noticed"
    )
    if unnoticed:
        print(f"  error: not noticed in {count} clusters each: {', '.join(unnoticed)}")
    return not unnoticed


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clusters", type=int, default=2000, help="random clusters")
    parser.add_argument("--first", type=int, default=0, help="seed of the first")
    parser.add_argument(
        "--sole",
        type=int,
        default=40,
        help="clusters in which every filter must be the only one to refuse a pair",
    )
    parser.add_argument("--mutated", type=int, default=1000, help="most clusters for each mutation")
    parser.add_argument("--no-dump", action="store_true")
    parser.add_argument("--no-mutations", action="store_true")
    args = parser.parse_args()
    good = compare_random(args.first, args.clusters, args.sole)
    good = compare_sets("random clusters", clusters(args.first, args.clusters)) and good
    good = (args.no_dump or compare_dump()) and good
    good = (args.no_mutations or compare_mutations(args.mutated)) and good
    print("gpusched and kube-scheduler agree" if good else "gpusched and kube-scheduler do not agree")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
