"""What the controller did."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import control
from ..errors import InvalidInput, repr_text
from .._axes import new_axes, plain, quiet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ACTIONS = {
    "throttle_io": ("#0072B2", "v", "block I/O limited"),
    "set_quota": ("#E69F00", "s", "quota changed"),
    "pin": ("#56B4E9", "d", "pinned"),
    "reconfigure": ("#D55E00", "^", "instance changed"),
}


def plot_control(log: str, config: Mapping[str, Any], tenant: str | None = None, ax: Axes | None = None) -> Axes:
    """Timeline of an audit log: a tenant's p99 and target, actions, and below its instance over time.

    `config` is the controller's configuration; `tenant` a protected one, by default the first.
    """
    host = control.Controller(dict(config)).config["host"]
    names = [t["name"] for t in host["tenants"]]
    protected = [t["name"] for t in host["tenants"] if t["protected"]]
    if tenant is None and protected:
        tenant = protected[0]
    if tenant not in protected:
        raise InvalidInput(f"tenant: {repr_text(tenant)}; expected one of {', '.join(protected) or 'none'}")
    at = names.index(tenant)
    keys = [[p.key for p in control.mig_layout(gpu["device"]).profiles] for gpu in host["gpus"]]
    lines = [json.loads(line) for line in log.splitlines() if not line.startswith('{"record":')]
    if not lines:
        raise InvalidInput("log: no window in it")
    minutes = np.array([x["observation"]["time_s"] for x in lines], dtype=float) / 60
    p99 = np.array([x["observation"]["tenants"][at][3] for x in lines], dtype=float)
    ax = new_axes(ax, figsize=(9.0, 3.4))
    tau = host["tenants"][at]["tau_ms"]
    ax.plot(minutes, p99, color="#4d4d4d", linewidth=0.8)
    ax.axhline(tau, color="#4d4d4d", linestyle="--", linewidth=0.8)
    ax.annotate("target", (minutes[-1], tau), (4, 0), textcoords="offset points", va="center", fontsize=8)
    top = float(np.nanmax(np.append(p99, tau))) * 1.15
    for kind, (color, marker, label) in ACTIONS.items():
        taken = [
            m
            for m, line in zip(minutes, lines)
            if any(a["kind"] == kind and a["tenant"] == at for a in line["actions"])
        ]
        if taken:
            ax.plot(taken, [0.97 * top] * len(taken), marker, color=color, label=label, markersize=6, clip_on=False)
    # The instance as a strip below: one piece per stay.
    stays: list[tuple[float, str]] = []
    for m, line in zip(minutes, lines):
        gpu, profile, start = line["states"][at][4][:3]
        text = f"GPU {gpu} {keys[gpu][profile]}@{start}"
        if not stays or stays[-1][1] != text:
            stays.append((m, text))
    ends = [m for m, _ in stays[1:]] + [float(minutes[-1])]
    shades = ("#E4E4E4", "#C8DDEA")
    height = 0.09 * top
    for k, ((begin, text), end) in enumerate(zip(stays, ends)):
        ax.barh(-height / 2, end - begin, height, begin, color=shades[k % 2])
        ax.annotate(text, ((begin + end) / 2, -height / 2), ha="center", va="center", fontsize=7)
    ax.set_ylim(-height, top)
    ax.set_xlim(minutes[0], max(minutes[-1], minutes[0] + 1e-9))
    ax.set_xlabel("minutes")
    ax.set_ylabel(f"p99 of {plain(tenant)}, ms")
    if ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False, fontsize=8, ncols=4, loc="lower left", bbox_to_anchor=(0, 1))
    quiet(ax)
    return ax
