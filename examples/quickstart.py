# SPDX-License-Identifier: Apache-2.0
"""The main job: which GPUs are lost to fragmentation, and a checked plan that frees whole nodes.

Runs on a generated cluster of 37,707 nodes with 155,410 GPUs; on your own with
    python examples/quickstart.py CLUSTER.json
Figures go to build/quickstart/ when matplotlib is installed.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path

import gpusched as gs


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cluster", nargs="?", help="a gpusched.cluster file (default: a generated cluster)")
    parser.add_argument(
        "--output", default="build/quickstart", type=Path, help="folder for the plan and the figures"
    )
    arguments = parser.parse_args()
    start = time.perf_counter()

    # 1. A snapshot: who runs where.
    cluster = (
        gs.Cluster.from_json(arguments.cluster) if arguments.cluster else gs.sim.generate_cluster(seed=0)
    )
    ratio = gs.fragmentation.allocation_ratio(cluster)
    print(f"{cluster}: {100 * ratio.total:.1f} % of the GPUs allocated")

    # 2. Which idle GPUs can a request not use, and why?
    report = gs.fragmentation.report(cluster, "asi", max_gpus_per_node=8)
    print("\nIdle GPUs that a request cannot use, by cause\n" + str(report))

    # 3. Vacate as many nodes as possible by moving tasks, in waves that never need space that is not there.
    plan = gs.consolidate(cluster)
    print("\n" + str(gs.consolidation.value_report(cluster, plan)).rstrip())

    # 4. Check the plan with code that shares nothing with the search, then look at where it leads.
    checked = gs.verify.plan(cluster, plan)
    after = gs.apply(cluster, plan)
    print(
        "\nThe same report after the plan\n" + str(gs.fragmentation.report(after, "asi", max_gpus_per_node=8))
    )

    arguments.output.mkdir(parents=True, exist_ok=True)
    plan.to_json(arguments.output / "plan.json")
    save_figures(cluster, after, plan, arguments.output)

    gpus, bound = plan.stats["vacated_gpus"], plan.bound["vacated_gpus_at_most"]
    percent = math.floor(1000 * gpus / bound) / 10 if bound else 100.0  # rounded down: this is a promise
    print(f"\n{time.perf_counter() - start:.1f} s in all; plan and figures in {arguments.output}")
    if not checked.ok:
        raise SystemExit("plan NOT verified:\n" + "\n".join(checked.violations))
    print(
        f"vacated {len(plan.vacated_nodes):,} nodes / {gpus:,} GPUs, "
        f"at least {percent} % of the proven bound, plan verified"
    )


def save_figures(before: gs.Cluster, after: gs.Cluster, plan: gs.Plan, folder: Path) -> None:
    """Fragmentation and occupancy before and after, and the plan's waves."""
    try:
        import matplotlib
    except ImportError:
        print("\nno figures: pip install matplotlib")
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from gpusched.plotting import plot_fragmentation, plot_occupancy, plot_waves

    figure, axes = plt.subplots(1, 2, figsize=(11, 3.8), sharey=True, layout="constrained")
    for ax, cluster, title in zip(axes, (before, after), ("before", "after")):
        plot_fragmentation(gs.fragmentation.report(cluster, "asi", max_gpus_per_node=8), ax=ax)
        ax.set_title(title, loc="right")
    axes[1].set_ylabel("")
    figure.savefig(folder / "fragmentation.png", dpi=150)

    figure, axes = plt.subplots(2, 1, figsize=(8, 4.6), layout="constrained")
    for ax, cluster, title in zip(axes, (before, after), ("before", "after")):
        plot_occupancy(cluster, ax=ax)
        ax.set_title(title, loc="right")
    figure.savefig(folder / "occupancy.png", dpi=150)

    plot_waves(plan).figure.savefig(folder / "waves.png", dpi=150)
    plt.close("all")


if __name__ == "__main__":
    main()
