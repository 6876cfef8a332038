# SPDX-License-Identifier: Apache-2.0
"""Checks on a real control plane: etcd, kube-apiserver, kube-scheduler, kube-controller-manager and kubectl.

    control_plane.py [PART...] [--seeds 10] [--nodes 60] [--pods 300]
                     [--runs goal stops full] [--minutes 600]

scheduling: what kube-scheduler does with pending pods agrees with our feasibility (scheduling.py)
snapshots: `kube snapshot` reads what kubectl prints, with the rights that are shipped and no fewer
  (api_snapshots.py)
steps (only if named): the exported script next to `kubectl drain`: nodes freed, evictions, harm (steps.py)
moves: when the moves of a plan are carried out, pending pods run where they could not; the exported script
  carries them out (moves.py)
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import tempfile
import time

import api_snapshots
import moves
import scheduling
import steps

PARTS = ("scheduling", "snapshots", "moves")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"default: {', '.join(PARTS)}")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--nodes", type=int, default=60)
    parser.add_argument("--pods", type=int, default=300)
    parser.add_argument("--runs", nargs="+", choices=steps.RUNS, default=steps.RUNS, help="of steps")
    parser.add_argument(
        "--minutes", type=float, default=600, help="of steps: begin no further seed after them"
    )
    args = parser.parse_args()
    if unknown := set(args.parts) - {*PARTS, "steps"}:
        parser.error(f"no part {', '.join(sorted(unknown))}: there are {', '.join(PARTS)}, steps")
    failed = []
    for part in args.parts or PARTS:
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="gpusched-control-plane-") as name:
            folder = pathlib.Path(name)
            if part == "scheduling":
                good = scheduling.check(folder, args.seeds, args.nodes, args.pods)
            elif part == "steps":
                good = steps.check(folder, args.seeds, args.nodes, args.runs, args.minutes)
            else:
                good = (api_snapshots if part == "snapshots" else moves).check(folder)
        print(
            f"{part}: {'agrees' if good else 'DOES NOT AGREE'} ({time.monotonic() - started:.0f} s)",
            flush=True,
        )
        failed += [part] * (not good)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
