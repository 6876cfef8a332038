# SPDX-License-Identifier: Apache-2.0
"""Timelines of the controller's audit logs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import control
from .._drawing import hide_frame, new_axes, plain
from ..errors import InvalidInput, InvalidType, repr_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ACTIONS = {
    "throttle_io": ("#0072B2", "v", "block I/O limited"),
    "set_quota": ("#E69F00", "s", "quota changed"),
    "pin": ("#56B4E9", "d", "pinned"),
    "reconfigure": ("#D55E00", "^", "instance changed"),
}


def _windows(log: str) -> list[dict[str, Any]]:
    """The windows of an audit log, one per line."""
    wrong = f"log: {repr_text(log)}; expected the text of an audit log"
    if not isinstance(log, str):
        raise InvalidType(wrong)
    try:
        lines = [json.loads(line) for line in log.splitlines() if not line.startswith('{"record":')]
    except json.JSONDecodeError as error:
        raise InvalidInput(wrong) from error
    if not lines:
        raise InvalidInput("log: no windows; expected at least one")
    if not all(
        isinstance(line, dict) and {"observation", "actions", "states"} <= line.keys() for line in lines
    ):
        raise InvalidInput(wrong)
    return lines


def plot_control(
    log: str, config: Mapping[str, Any], tenant: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draws the timeline of an audit log: a tenant's p99 and target, the actions, and its instance over time.

    `config`: the controller's configuration. `tenant`: a protected tenant, by default the first.
    """
    lines = _windows(log)
    host = control.Controller(config).config["host"]
    names = [t["name"] for t in host["tenants"]]
    protected = [t["name"] for t in host["tenants"] if t["protected"]]
    if tenant is None and protected:
        tenant = protected[0]
    if tenant not in protected:
        raise InvalidInput(f"tenant: {repr_text(tenant)}; expected one of {', '.join(protected) or 'none'}")
    at = names.index(tenant)
    keys = [[p.key for p in control.mig_layout(gpu["device"]).profiles] for gpu in host["gpus"]]
    minutes = np.array([x["observation"]["time_s"] for x in lines], dtype=float) / 60
    p99 = np.array([x["observation"]["tenants"][at][3] for x in lines], dtype=float)
    ax = new_axes(ax, figsize=(9.0, 3.4))
    tau = host["tenants"][at]["tau_ms"]
    ax.plot(minutes, p99, color="#4d4d4d", linewidth=0.8)
    ax.axhline(tau, color="#4d4d4d", linestyle="--", linewidth=0.8)
    ax.annotate("target", (minutes[-1], tau), (4, 0), textcoords="offset points", va="center", fontsize=8)
    taken: dict[str, list[float]] = {kind: [] for kind in ACTIONS}
    for minute, line in zip(minutes, lines):
        for kind in {action["kind"] for action in line["actions"] if action["tenant"] == at} & taken.keys():
            taken[kind].append(minute)
    # Each kind of action has its own height above the curve, so that markers do not hide each other.
    shown = [kind for kind in ACTIONS if taken[kind]]
    highest = float(np.nanmax(np.append(p99, tau)))
    for row, kind in enumerate(shown):
        color, marker, label = ACTIONS[kind]
        height = [(1.08 + 0.07 * row) * highest] * len(taken[kind])
        ax.plot(taken[kind], height, marker, color=color, label=label, markersize=6, clip_on=False)
    top = (1.08 + 0.07 * len(shown)) * highest
    # The instance as a strip below the curve: one piece per stay.
    stays: list[tuple[float, str]] = []
    for m, line in zip(minutes, lines):
        gpu, profile, start = line["states"][at][4][:3]
        text = f"GPU {gpu} {keys[gpu][profile]}@{start}"
        if not stays or stays[-1][1] != text:
            stays.append((m, text))
    ax.set_xlim(minutes[0], max(minutes[-1], minutes[0] + 1e-9))
    ax.set_ylim(0, top)
    ax.set_xlabel("minutes")
    ax.set_ylabel(f"p99 of {plain(tenant)}, ms")
    if ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False, fontsize=8, ncols=4, loc="lower left", bbox_to_anchor=(0, 1))
    hide_frame(ax)
    draw_stays(ax, stays, float(minutes[-1]), top)
    ax.set_yticks([tick for tick in ax.get_yticks() if 0 <= tick <= top])
    return ax


MAX_NAME_ROWS = 8


def draw_stays(ax: Axes, stays: list[tuple[float, str]], last: float, top: float) -> None:
    """Draws a strip below zero with one piece per stay.

    A name that is wider than its piece is written below the strip, in one of eight rows. If all are taken, it
    is omitted.
    """
    figure: Any = ax.figure
    figure.draw_without_rendering()  # the layout determines the width of the names
    renderer = figure.canvas.get_renderer()
    first, final = ax.get_xlim()
    ends = [begin for begin, _ in stays[1:]] + [last]
    at_pixel = ax.transData.transform([(first, 0.0), (final, 0.0)])[:, 0]
    space = 0.008 * (final - first)
    right: list[float] = []  # end of the last name in each row below the strip
    places: list[tuple[float, int] | None] = []
    labels, tallest = [], 0.0
    for (begin, text), end in zip(stays, ends):
        label = ax.annotate(text, ((begin + end) / 2, 0), ha="center", va="center", fontsize=7)
        box = label.get_window_extent(renderer)
        wide = float(box.width * (final - first) / (at_pixel[1] - at_pixel[0])) + space
        labels.append(label)
        tallest = max(tallest, float(box.height))
        if wide <= end - begin:
            places.append(((begin + end - wide) / 2, 0))
            continue
        at = max(first, min(begin, final - wide))
        row = next((r for r, taken in enumerate(right) if taken <= at), len(right))
        if row == MAX_NAME_ROWS:
            places.append(None)
            continue
        right[row : row + 1] = [at + wide]
        places.append((at, row + 1))
    # A row is as high as its text; `part` is the share of the axes' height that all rows take.
    row_part = max(0.075, 1.25 * tallest / float(ax.get_window_extent(renderer).height))
    part = min(0.8, row_part * (len(right) + 1))
    height = top * part / (1 - part) / (len(right) + 1)
    shades = ("#E4E4E4", "#C8DDEA")
    for k, ((begin, _), end, label, place) in enumerate(zip(stays, ends, labels, places)):
        ax.barh(-height / 2, end - begin, height, begin, color=shades[k % 2])
        if place is None:
            label.remove()
            continue
        label.xyann = (place[0] + space / 2, -(place[1] + 0.5) * height)
        label.set_horizontalalignment("left")
        if place[1] > 0:
            ax.plot([begin, begin], [-height, -(place[1] + 0.9) * height], color="#4d4d4d", linewidth=0.6)
    ax.set_ylim(-(len(right) + 1) * height, top)
