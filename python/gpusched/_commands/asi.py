# SPDX-License-Identifier: Apache-2.0
"""The command `asi-figures`: the tables and figures of the ASI trace."""

from __future__ import annotations

import argparse
import functools
import os
from pathlib import Path

from .. import io
from ..errors import InvalidInput, explained
from .arguments import Parser, flag
from .shared import OK, given, save_figure, say, write_text


def span(text: str) -> tuple[int, int]:
    """Days such as 109-115, or a single day."""
    first, _, last = text.partition("-")
    if first.isdigit() and (last or first).isdigit():
        return int(first), int(last or first)
    raise argparse.ArgumentTypeError(
        f"{text!r} are no days; expected the first and the last day, like 109-115"
    )


def asi_figures_options(p: Parser) -> None:
    days = {"type": span, "metavar": "FIRST-LAST"}
    text = "folder with the tables of the release (asi_opensource_pod_hourly, ...)"
    p.add("folder", text, metavar="FOLDER")
    p.add("-o --output", "write a table for each figure here, as CSV", required=True, metavar="FOLDER")
    p.add("--days", "days of most figures (default: 109-115, the paper's week)", **days)
    p.add("--job-type-days", "days of Figure 2 (default: 109-184)", **days)
    flag(p, "--partial", "accept days with fewer than 24 hours")
    flag(p, "--plots", "also draw the figures")
    flag(p, "--progress", "show a progress bar")


def asi_figures(args: argparse.Namespace) -> int:
    output = Path(args.output)
    if os.path.abspath(output) == os.path.abspath(args.folder):
        raise InvalidInput(f"output: {args.output}; expected a folder other than the folder of the tables")
    with explained(output):
        output.mkdir(parents=True, exist_ok=True)
    tables = io.read_asi_figures(args.folder, **given(args, "days", "job_type_days", "partial", "progress"))
    for name, table in tables.items():
        write_text(str(output / f"{name}.csv"), table.to_csv())
    if args.plots:
        from .. import plotting

        for name, table in tables.items():
            if name.startswith("fig") and len(table):
                save_figure(
                    str(output / f"{name}.png"), functools.partial(plotting.plot_asi_figure, tables, name)
                )
    for name, source in (("fig12", "network_hourly"), ("fig7_left", "job_execution_summary")):
        if name not in tables:
            say(f"{name.partition('_')[0]}: skipped, because the folder has no table asi_opensource_{source}")
    return OK
