# SPDX-License-Identifier: Apache-2.0
"""The console script `gpusched`: everyday tasks on files.

Exit codes
    0    done as asked
    1    not reached, or only in part; diff: different; a plan does not verify; a replay differs
    2    bad input, or a file that cannot be read or written
    3    a controlled host is in a state that an operator must check
    4    the job does not wait for room
    130  interrupted
    141  the reader of the output has closed it
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TextIO, cast

from . import __version__
from ._commands import (
    asi,
    autoscale,
    bundles,
    clusters,
    control,
    jobs,
    kube,
    maintenance,
    plans,
    serving,
    topology,
    why,
)
from ._commands.arguments import Parser
from ._commands.shared import BAD_INPUT, CLOSED_PIPE, INTERRUPTED, OK, say
from ._optional import require
from .errors import BackendError, InvalidInput


def completion_options(p: Parser) -> None:
    p.add("shell", "the shell that reads the script", choices=("bash", "zsh"))


def completion(args: argparse.Namespace) -> int:
    """Prints a script that completes commands, options, names and files in a shell."""
    say(require("shtab", "completion").complete(args.parser, args.shell))
    return OK


Command = tuple[str, Callable[[argparse.Namespace], int], Callable[[Parser], None], str]

# fmt: off
COMMANDS: tuple[Command, ...] = (
    ("generate", clusters.generate, clusters.generate_options, "write a generated cluster"),
    ("import", clusters.import_cluster, clusters.import_options,
     "read a cluster from the output of another system, and report how exactly"),
    ("kube snapshot", kube.snapshot, kube.snapshot_options,
     "read a cluster from its API server, and report how exactly"),
    ("kube rbac", kube.rbac, kube.rbac_options,
     "print the minimal permissions for kube snapshot, for kubectl apply"),
    ("report", clusters.report, clusters.report_options,
     "show idle GPUs, pending jobs, and why idle GPUs cannot be used"),
    ("asi-figures", asi.asi_figures, asi.asi_figures_options,
     "write the tables and figures of the ASI paper from its public trace"),
    ("replay", clusters.replay, clusters.replay_options, "place the tasks of an openb trace one by one"),
    ("consolidate", plans.consolidate, plans.consolidate_options,
     "plan moves that vacate nodes, and check the plan"),
    ("frontier", plans.frontier, plans.frontier_options,
     "show how much can be vacated with how many moves, with upper bounds"),
    ("blockers", maintenance.blockers, maintenance.blockers_options,
     "rank what keeps nodes from being freed by what a plan frees without it"),
    ("drain-order", maintenance.drain_order, maintenance.drain_order_options,
     "plan batches in which nodes are drained for an upgrade, and check the plans"),
    ("what-if", maintenance.what_if, maintenance.what_if_options,
     "show which pending jobs would start if nodes were added, removed or uncordoned"),
    ("preempt", jobs.preempt, jobs.preempt_options,
     "choose tasks to evict so that a pending task or gang can run"),
    ("allocate", jobs.allocate, jobs.allocate_options,
     "place jobs over switches, each completely or not at all"),
    ("admit", jobs.admit, jobs.admit_options,
     "admit a job by placing, moving, evicting and borrowing, at the lowest cost"),
    ("why", why.why, why.why_options,
     "show why a pending job or task does not run, and what would help"),
    ("plan-serving", serving.plan_serving, serving.plan_serving_options,
     "choose GPUs to rent for language models, and assign requests to them"),
    ("serving-curve", serving.serving_curve, serving.serving_curve_options,
     "show the cost of rates and latency targets"),
    ("autoscale", autoscale.autoscale, autoscale.autoscale_options,
     "compare policies that scale prefill and decode replicas over a day of requests"),
    ("verify", plans.verify_plan, plans.verify_options, "replay a plan and report every violated constraint"),
    ("explain", plans.explain, plans.explain_options,
     "show which task and which constraint kept a node occupied; use the options of the plan"),
    ("explain-move", plans.explain_move, plans.explain_move_options,
     "show why a task cannot move to a node, and the effects of the move; use the options of the plan"),
    ("replay-bundle", bundles.replay_bundle, bundles.replay_bundle_options,
     "run a saved command again and compare the plans"),
    ("export", plans.export, plans.export_options,
     "write a plan as CSV, as kubectl steps or as Koordinator objects"),
    ("diff", plans.diff, plans.diff_options,
     "show the differences of two snapshots, plans or reading reports"),
    ("plan-page", plans.plan_page, plans.plan_page_options, "write a page for the approval of a plan"),
    ("topology", topology.topology_command, topology.topology_options,
     "show the network above the nodes, or a machine; publish a machine"),
    ("anonymize", clusters.anonymize, clusters.anonymize_options, "write a snapshot with all names replaced"),
    ("control", control.control_host, control.control_options,
     "control this host, or show the decisions on recorded signals"),
    ("simulate-host", control.simulate_host, control.simulate_host_options,
     "run the controller on a simulated host"),
    ("replay-audit", control.replay_audit, control.replay_audit_options,
     "repeat the decisions of an audit log and compare them"),
    ("plot", clusters.plot, clusters.plot_options, "draw a cluster"),
    ("completion", completion, completion_options,
     "print a script that completes commands and options in a shell"),
)
# fmt: on

GROUPS = {"kube": "read a Kubernetes cluster through its API server"}
"""First words of two-word commands."""


def parser() -> Parser:
    top = Parser(prog="gpusched", description="Scheduling algorithms for GPU clusters.")
    top.add_argument("--version", action="version", version=f"gpusched {__version__}")
    subparsers = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    groups: dict[str, Any] = {}
    for name, run, options, text in COMMANDS:
        group, _, word = name.rpartition(" ")
        if group and group not in groups:
            parent: Parser = subparsers.add_parser(
                group, help=GROUPS[group], description=sentence(GROUPS[group])
            )
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
        sys.stdout.reconfigure(
            errors="backslashreplace"
        )  # names may contain characters that it cannot encode
    command = top = parser()
    try:
        try:
            args = top.parse_args(argv)
            command = top.commands[args.command]
        finally:
            sys.stdout.flush()  # --help and --version print and exit
        with held_back() if writes_files(args) else contextlib.nullcontext():
            code = int(args.run(args))
        sys.stdout.flush()
        return code
    except InvalidInput as error:
        print_problems(*map(command.with_option_name, error.problems))
    except BackendError as error:
        print_problems(error)
        return int(getattr(error, "exit_code", BAD_INPUT))
    except BrokenPipeError:  # the reader has closed the pipe
        abandon(sys.stdout)
        return CLOSED_PIPE
    except OSError as error:  # errors of files are BackendErrors, so this is standard output
        abandon(sys.stdout)
        print_problems(f"standard output: cannot be written: {error.strerror}")
    except KeyboardInterrupt:
        print_problems("interrupted")
        return INTERRUPTED
    return BAD_INPUT


def writes_files(args: argparse.Namespace) -> bool:
    """Whether the command writes files and ends, and its output goes to a pipe or a file."""
    endless = args.command == "topology"  # watch
    return getattr(args, "output", None) is not None and not endless and not sys.stdout.isatty()


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Prints only in the end: a closed pipe must not stop the command before it has written its files."""
    held = io.StringIO()
    try:
        with contextlib.redirect_stdout(held):
            yield
    finally:
        sys.stdout.write(held.getvalue())


class Closed(io.TextIOBase):
    """Stands for a closed standard output: every write fails."""

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))


def print_problems(*problems: object) -> None:
    """Prints one line per problem on standard error, if it can be written."""
    try:
        for problem in problems:
            print(f"gpusched: {problem}", file=sys.stderr, flush=True)
    except OSError:
        abandon(sys.stderr)


def abandon(stream: TextIO) -> None:
    """Redirects a broken stream to the null device, so that flushing it at exit does not fail."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


if __name__ == "__main__":
    sys.exit(main())
