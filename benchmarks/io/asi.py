#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures time and memory of reading a day of the ASI release's tables.

    python benchmarks/io/asi.py [--servers 37707] [--pods-without-gpus 23] [--hours 24] [-o ROWS.jsonl]
[--smoke]

Generates tables of the release's schema (`gpusched.sim.generate_asi_tables`; the defaults give 10^6 pods an
hour) and keeps --hours of the day. Then it reads, each in a new process: all figures of these hours
(`gpusched.io.read_asi_figures`), those of the first hour alone, and the snapshot of that hour
(`gpusched.io.read_asi_hour`). Each line has the rows of pods, the processor seconds of reading (all threads;
without generating and importing), rows per second, and the peak resident memory of the process. -o writes the
same as JSON lines.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

DAY = 109


def peak_mib() -> float:
    """Peak memory of this process. The system's figure for children would include the parent's memory."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def read(what: str, folder: str) -> None:
    """In the child: prints the measures."""
    import gpusched as gs
    import pyarrow.parquet  # noqa: F401  # before the clock starts

    before, start = peak_mib(), time.process_time()
    if what == "snapshot":
        gs.io.read_asi_hour(folder, DAY, 0)
    else:
        gs.io.read_asi_figures(folder, days=(DAY, DAY), partial=True)
    print(json.dumps({"cpu_s": time.process_time() - start, "import_mib": before, "peak_mib": peak_mib()}))


def rows_of(folder: Path) -> int:
    from pyarrow.parquet import ParquetFile

    files = (folder / "asi_opensource_pod_hourly").glob("day=*/hour=*/*.parquet")
    return sum(ParquetFile(path).metadata.num_rows for path in files)


def keep_hours(folder: Path, hours: int) -> None:
    for path in folder.glob("asi_opensource_*/day=*/hour=*"):
        if int(path.name.removeprefix("hour=")) >= hours:
            shutil.rmtree(path)


def measure(what: str, folder: Path, hours: int) -> dict[str, Any]:
    keep_hours(folder, hours)
    rows = rows_of(folder)
    out = subprocess.run(
        [sys.executable, __file__, "--child", what, str(folder)], check=True, capture_output=True, text=True
    )
    return {"what": what, "hours": hours, "rows": rows, **json.loads(out.stdout)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--servers", type=int, default=37_707)
    parser.add_argument("--pods-without-gpus", type=int, default=23, help="on each server")
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        read(*args.child)
        return
    if args.smoke:
        args.servers, args.hours = 200, 2
    import gpusched as gs

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        start = time.process_time()
        gs.sim.generate_asi_tables(
            folder, servers=args.servers, pods_without_gpus=args.pods_without_gpus, first_day=DAY
        )
        print(
            f"generated {rows_of(folder):,} rows of pods of 24 hours in {time.process_time() - start:.0f} s"
        )
        runs = [
            measure(what, folder, hours)
            for what, hours in (("figures", args.hours), ("figures", 1), ("snapshot", 1))
        ]
    for run in runs:
        rate = run["rows"] / run["cpu_s"]
        print(
            f"{run['what']}, {run['hours']} h: {run['rows']:,} rows, {run['cpu_s']:.1f} s, "
            f"{rate:,.0f} rows/s, "
            f"peak {run['peak_mib']:,.0f} MiB ({run['import_mib']:,.0f} MiB before)"
        )
    if args.output:
        args.output.write_text("".join(json.dumps(run) + "\n" for run in runs), encoding="utf-8")


if __name__ == "__main__":
    main()
