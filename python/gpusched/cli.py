"""The console script `gpusched`: everyday jobs on files.

Exit codes: 0 done, 1 a plan does not verify, no eviction helps, a job is not placed, there is no serving plan or a log
replays otherwise, 2 bad input or a file that cannot be read or written, 130 interrupted, 141 whoever reads the output has
closed it.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, TextIO, cast

from . import __version__
from ._commands import asi, autoscale, bundles, clusters, completion, control, jobs, kube, plans, serving, topology
from ._commands.arguments import Parser
from ._commands.shared import BAD_INPUT, CLOSED_PIPE, INTERRUPTED
from .errors import BackendError, InvalidInput

COMMANDS: tuple[tuple[str, Callable[[argparse.Namespace], int], Callable[[Parser], None], str], ...] = (
    ("generate", clusters.generate, clusters.generate_options, "write a generated cluster"),
    ("import", clusters.import_cluster, clusters.import_options, "read a cluster from what another system prints, and say how exactly"),
    ("kube snapshot", kube.snapshot, kube.snapshot_options, "read a cluster from its API server, and say how exactly"),
    ("kube rbac", kube.rbac, kube.rbac_options, "print the least rights that kube snapshot needs, for kubectl apply"),
    ("report", clusters.report, clusters.report_options, "say which idle GPUs cannot be used, and why"),
    ("asi-figures", asi.asi_figures, asi.asi_figures_options, "write the tables and figures of the ASI paper, from its public trace"),
    ("replay", clusters.replay, clusters.replay_options, "place the tasks of an openb trace one by one"),
    ("consolidate", plans.consolidate, plans.consolidate_options, "plan moves that vacate nodes, and check the plan"),
    ("frontier", plans.frontier, plans.frontier_options, "show what can be vacated for how many moves, and what nobody can exceed"),
    ("preempt", jobs.preempt, jobs.preempt_options, "say whom to evict so that a pending task, or a gang, can run"),
    ("allocate", jobs.allocate, jobs.allocate_options, "place jobs over switches, each with all of its pods or not at all"),
    ("admit", jobs.admit, jobs.admit_options, "let a job in by placing, moving, evicting and borrowing, at the least cost"),
    (
        "plan-serving",
        serving.plan_serving,
        serving.plan_serving_options,
        "say which GPUs to rent for language models, and where requests go",
    ),
    ("serving-curve", serving.serving_curve, serving.serving_curve_options, "show what rates and latency targets cost"),
    (
        "autoscale",
        autoscale.autoscale,
        autoscale.autoscale_options,
        "compare policies that scale prefill and decode replicas over a day of requests",
    ),
    ("verify", plans.verify_plan, plans.verify_options, "replay a plan and report every constraint that it breaks"),
    (
        "explain",
        plans.explain,
        plans.explain_options,
        "say which task and which constraint kept a node; options as the plan was made with",
    ),
    (
        "explain-move",
        plans.explain_move,
        plans.explain_move_options,
        "say what keeps a task off a node, and what the move would change; options as the plan was made with",
    ),
    ("replay-bundle", bundles.replay_bundle, bundles.replay_bundle_options, "run a saved command again and compare the plans"),
    ("export", plans.export, plans.export_options, "write a plan as CSV, as kubectl steps or as Koordinator objects"),
    ("topology", topology.topology_command, topology.topology_options, "show the network above the nodes, or a machine; publish a machine"),
    ("anonymize", clusters.anonymize, clusters.anonymize_options, "write a snapshot without the names that tell whose it is"),
    ("control", control.control_host, control.control_options, "control this host, or say what would be done on recorded signals"),
    ("simulate-host", control.simulate_host, control.simulate_host_options, "run the controller on a simulated host"),
    ("replay-audit", control.replay_audit, control.replay_audit_options, "derive the decisions of an audit log again"),
    ("plot", clusters.plot, clusters.plot_options, "draw a cluster"),
    ("completion", completion.completion, completion.completion_options, "print the script that completes commands and options in a shell"),
)


GROUPS = {"kube": "read a Kubernetes cluster through its API server"}
"""First words of commands of two words."""


def parser() -> Parser:
    top = Parser(prog="gpusched", description="Scheduling algorithms for GPU clusters.")
    top.add_argument("--version", action="version", version=f"gpusched {__version__}")
    subparsers = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    groups: dict[str, Any] = {}
    for name, run, options, text in COMMANDS:
        group, _, word = name.rpartition(" ")
        if group and group not in groups:
            parent: Parser = subparsers.add_parser(group, help=GROUPS[group], description=sentence(GROUPS[group]))
            parent.problems = top.problems
            groups[group] = parent.add_subparsers(dest="command", required=True, metavar="COMMAND")
        sub: Parser = groups.get(group, subparsers).add_parser(word, help=text, description=sentence(text))
        sub.set_defaults(run=run, fields=sub.fields, command=name, parser=top)
        sub.problems = top.problems
        top.commands[name] = sub
        options(sub)
    return top


def sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code."""
    if sys.stdout is None:  # the caller closed it (>&-)
        sys.stdout = cast(TextIO, Closed())
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a name that it cannot show is no reason to end
    command = top = parser()
    try:
        try:
            args = top.parse_args(argv)
            command = top.commands[args.command]
        finally:
            flush()  # --help and --version print and end
        code = int(args.run(args))
        flush()
        return code
    except InvalidInput as error:
        complain(*map(command.by_option, error.problems))
    except BackendError as error:
        complain(error)
        return int(getattr(error, "exit_code", BAD_INPUT))
    except BrokenPipeError:  # whoever reads has seen enough
        abandon(sys.stdout)
        return CLOSED_PIPE
    except OSError as error:  # files have been seen to; this is standard output
        abandon(sys.stdout)
        complain(f"standard output: cannot be written: {error.strerror}")
    except KeyboardInterrupt:
        complain("interrupted")
        return INTERRUPTED
    return BAD_INPUT


class Closed(io.TextIOBase):
    """Standard output that nobody opened: what is written to it fails."""

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))


def complain(*problems: object) -> None:
    """One line each on standard error, as far as that can be written."""
    try:
        for problem in problems:
            print(f"gpusched: {problem}", file=sys.stderr, flush=True)
    except OSError:
        abandon(sys.stderr)


def flush() -> None:
    sys.stdout.flush()


def abandon(stream: TextIO) -> None:
    """Keeps the interpreter from flushing what cannot be written when it ends, which would print or fail."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


if __name__ == "__main__":
    sys.exit(main())
