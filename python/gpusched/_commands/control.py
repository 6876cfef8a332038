# SPDX-License-Identifier: Apache-2.0
"""Commands of the controller: `control`, `simulate-host`, `replay-audit`."""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import json
import logging
import signal
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any, get_args

from .. import control, host, sim
from .._views.tables import Row, counted, format_table
from ..errors import BackendError, InvalidInput, explained
from . import dry_run, sensitivity
from .arguments import Parser, flag, library_option
from .shared import FAILED, OK, UNKNOWN_STATE, given, read_mapping, require_writable, save_figure, say

VARIANTS = get_args(sim.HostVariant)


def explain_columns(p: Parser, columns: Mapping[str, str]) -> None:
    """Describes the columns of a command's table below the options in its help."""
    lines = [
        textwrap.fill(
            f"{name}: {text}", 78, initial_indent="  ", subsequent_indent="      ", break_on_hyphens=False
        )
        for name, text in columns.items()
    ]
    p.epilog = "figures:\n" + "\n".join(lines)
    p.formatter_class = argparse.RawDescriptionHelpFormatter


def read_text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BackendError(f"{path}: cannot be read: {reason}") from None


def read_config(path: str, dry_run: bool | None) -> dict[str, Any]:
    """Reads a configuration. The library checks its content."""
    document = read_mapping(path)
    if dry_run and isinstance(document.setdefault("flags", {}), dict):
        document["flags"]["dry_run"] = True
    with of_file(path):
        control.Controller(document)
    return document


@contextlib.contextmanager
def of_file(path: str) -> Iterator[None]:
    """Problems of the block name the file."""
    try:
        yield
    except InvalidInput as error:
        problems = [problem.removeprefix("configuration: ") for problem in error.problems]
        raise InvalidInput([f"{path}: {problem}" for problem in problems]) from None


@contextlib.contextmanager
def open_lines(path: str) -> Iterator[IO[str]]:
    """Opens a file of lines. Bytes that are not UTF-8 become escapes, so that the error names their line."""
    if path == "-":
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(errors="backslashreplace")
        yield sys.stdin
        return
    with explained(path, "read"):
        file = open(path, encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
    with file:
        yield file


@contextlib.contextmanager
def open_log(path: str | None, mode: str = "w") -> Iterator[IO[str] | None]:
    if path is None:
        yield None
        return
    with explained(path):
        file = open(path, mode, encoding="utf-8")  # noqa: SIM115
    with file:
        yield file


def begin_log(log: IO[str]) -> None:
    """Continues an existing log with a start record on its own line."""
    if not log.seekable() or log.tell() == 0:
        return
    with open(log.name, "rb") as file:
        file.seek(-1, 2)
        incomplete = file.read(1) != b"\n"
    log.write("\n" * incomplete + '{"record":"start"}\n')


@contextlib.contextmanager
def handled(controller: host.Controller) -> Iterator[None]:
    """SIGTERM and SIGINT end the loop after the window that runs, SIGUSR1 resumes."""
    handlers: dict[int, Any] = {
        signal.SIGTERM: controller.stop,
        signal.SIGINT: controller.stop,
        signal.SIGUSR1: controller.request_resume,
        signal.SIGCHLD: signal.SIG_DFL,  # if the caller ignores it, the ends of programs are not seen
    }
    old = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def control_live(args: argparse.Namespace, config: dict[str, Any]) -> int:
    """Controls this host until SIGTERM, SIGINT or the last window; then all limits end. SIGUSR1: an operator
    has looked.

    A failure of hardware or disk may be over at the next start (FAILED); a state that is not known needs an
    operator.
    """
    if args.windows is not None and args.windows < 0:
        raise InvalidInput(f"--windows: {args.windows}; expected at least 0")
    require_writable(args.audit, args.config_output, inputs=[args.config])
    with of_file(args.config):
        controller = host.Controller(config, audit=args.audit or "")
    with failing(), logged(args.log) as log, controller, handled(controller):
        for line in controller.start():
            log(line)
        if not args.audit:
            log("no audit log: --audit names one")
        if args.config_output:
            with open_log(args.config_output) as file:
                if file is not None:
                    json.dump({**controller.config, "live": config["live"]}, file, indent=2)
        windows = controller.run(windows=args.windows, say=log)
    if args.log == "text":
        say(f"{counted(windows, 'window')}; limits ended")
    return OK


@contextlib.contextmanager
def failing() -> Iterator[None]:
    """Failures of the host have an exit code of their own."""
    try:
        yield
    except BackendError as error:
        code = UNKNOWN_STATE if isinstance(error, host.UnknownState) else FAILED
        error.exit_code = code  # type: ignore[attr-defined]
        raise


def say_now(line: str) -> None:
    print(line, flush=True)


@contextlib.contextmanager
def logged(form: str) -> Iterator[Callable[[str], object]]:
    """The function that writes lines of output; for a structured log the controller's own logger does."""
    if form == "text":
        yield say_now
        return
    logger, handler = logging.getLogger("gpusched.host"), logging.StreamHandler(sys.stdout)
    handler.setFormatter(host.JsonFormatter())
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield lambda line: None
    finally:
        logger.removeHandler(handler)


def control_options(p: Parser) -> None:
    p.add(
        "what",
        "run (default), or show what a controller does",
        nargs="?",
        choices=("run", "status"),
        default="run",
    )
    p.add("--config", "with a section `live`: of this host", metavar="FILE.json")
    flag(p, "--init", "write a configuration of this machine to --config, or to standard output")
    p.add(
        "--signals",
        "recorded windows (default: this host; without `live`, standard input)",
        metavar="FILE.jsonl",
    )
    flag(p, "--dry-run", "decide and tell, act on nothing")
    p.add("--audit", "write the audit log; of a host, append to it", metavar="LOG.jsonl")
    p.add("--windows", "of a host: stop after so many (default: no limit)", type=int, metavar="N")
    p.add("--config-output", "of a host: the configuration in effect, to replay the log", metavar="FILE.json")
    p.add("--log", "of a host: form of the lines of output", choices=("text", "json"), default="text")


def control_init(path: str | None) -> int:
    with failing():
        machine = host.discover()
    text = json.dumps(machine.config(), indent=2) + "\n"
    for line in str(machine).splitlines():
        print(line, file=sys.stderr)
    if path is None:
        say(text.rstrip())
        return OK
    with explained(path), open(path, "x", encoding="utf-8") as file:
        file.write(text)
    say(f"{path}: written; check its tenants, then run gpusched control --config {path} --dry-run")
    return OK


def control_status(path: str, config: dict[str, Any]) -> int:
    with of_file(path):
        controller = host.Controller(config)
    with failing():
        status = controller.status()
    say("running" if status["running"] else "not running")
    if "windows" in status:
        say(f"{counted(status['windows'], 'window')}, the last one {time.time() - status['time']:.0f} s ago")
    for name, row in status.get("tenants", {}).items():
        p99 = f"p99 {row['p99_ms']:.1f} ms" if row.get("p99_ms") is not None else "p99 unknown"
        frozen = "; waits for an operator" if row["frozen"] else ""
        say(f"{name}: {row['phase']}, {p99}, GPU {row['gpu']} {row['profile']} at {row['slice']}{frozen}")
    for name, place in status["instances"].items():
        if name not in status.get("tenants", {}):
            say(f"{name}: {place}")
    for name, place in status["changes_cut_off"].items():
        say(f"{name}: a change to {place} has begun")
    for limit in status["limits"]:
        say(f"limit of block I/O: {limit}")
    return OK


def control_host(args: argparse.Namespace) -> int:
    """This host, or decisions on recorded signals with their reasons; then nothing is acted on."""
    if args.init:
        return control_init(args.config)
    if args.config is None:
        raise InvalidInput("control: --config is missing; --init writes a configuration of this machine")
    config = read_config(args.config, args.dry_run)
    if args.what == "status":
        return control_status(args.config, config)
    if "live" in config and args.signals is None:
        return control_live(args, config)
    if not args.dry_run:
        raise InvalidInput(
            "control: recorded signals need --dry-run; to control this host the configuration needs a "
            "section `live`"
        )
    if args.windows is not None or args.config_output is not None:
        raise InvalidInput(
            "--windows, --config-output: only for a host; expected a section `live` and no --signals"
        )
    controller = control.Controller(config)
    args.signals = args.signals or "-"
    require_writable(args.audit, inputs=[args.config, args.signals if args.signals != "-" else None])
    windows = actions = 0
    summary = dry_run.Summary(controller.config)
    with open_log(args.audit, "a") as log, open_lines(args.signals) as lines:
        if log is not None:
            begin_log(log)
        for number, line in enumerate(lines, 1):
            # Records of the log of a host, which is taken too, are no signals.
            if not line.strip() or line.startswith('{"record":'):
                continue
            try:
                controller.step(line)
            except InvalidInput as error:
                raise InvalidInput([f"{args.signals}: line {number}: {p}" for p in error.problems]) from None
            windows += 1
            recorded = controller.take_log()
            if log is not None:
                log.write(recorded)
                log.flush()  # other readers see every window, also after a crash
            document = json.loads(recorded)
            summary.take(document)
            time = document["observation"]["time_s"]
            when = f"{time:10.1f} s" if time is not None else f"{'?':>10} s"
            for event in controller.events:
                say(f"{when}  {event}")
            for action in controller.wished:
                actions += 1
                say(f"{when}  would {'act' if action.kind != 'release_io' else 'end'}: {action}")
    state = controller.state
    for name, row in state.items():
        say(f"{name}: {row['phase']}, GPU {row['gpu']} {row['profile']} at {row['slice']}")
    for line in summary.lines():
        say(line)
    say(f"{counted(windows, 'window')}, {counted(actions, 'action')} wished, none carried out")
    return OK


def with_spread(row: Row, name: str) -> str:
    """A cell with the mean over the seeds and, if they differ from it, the extremes."""
    if f"{name}_low" not in row.columns:
        return str(row[name])
    mean, low, high = (f"{row[name + end]:.1f}" for end in ("", "_low", "_high"))
    return mean if low == high else f"{mean} [{low}, {high}]"


def simulate_host_options(p: Parser) -> None:
    explain_columns(p, sim.HOST_COLUMNS)
    option = functools.partial(library_option, p, "sim.simulate_host")
    default = ["static", "guards", "placement", "mig", "full", "ours"]
    text = f"variants of the controller to compare: {', '.join(VARIANTS)}"
    p.add("--variants", text, nargs="+", choices=VARIANTS, default=default, metavar="NAME")
    p.add("--seeds", "number of runs per variant", type=int, default=7, metavar="N")
    p.add("--first-seed", "seed of the first run; the others follow", type=int, default=0, metavar="N")
    option("duration_s", metavar="SECONDS")
    option("scenario", "table3 or a harder one", metavar="NAME")
    text = "treatment of requests while a tenant is paused (default: as in the scenario)"
    p.add("--pause-mode", text, choices=("shed", "queue", "mbb"))
    text = (
        "change each setting of the controller alone instead (threshold, persistence, window, dwell, levels)"
    )
    flag(p, "--sensitivity", text)
    p.add("--audit", "write the audit log of the last variant's first run here", metavar="LOG.jsonl")
    text = "write the configuration of this run here, for replay-audit"
    p.add("--config-output", text, metavar="FILE.json")
    p.add("--plot", "draw the timeline of this run: p99, actions, instance", metavar="OUT.png")


def simulate_host(args: argparse.Namespace) -> int:
    require_writable(args.audit, args.config_output, args.plot)
    options = given(args, "sim.simulate_host")
    if args.pause_mode is not None:
        options["overrides"] = {"pause_mode": args.pause_mode}
    if args.seeds < 1:
        raise InvalidInput(f"--seeds: {args.seeds}; expected at least 1")
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    if args.sensitivity:
        if args.audit or args.config_output or args.plot:
            raise InvalidInput("--sensitivity: cannot be combined with --audit, --config-output and --plot")
        say(sensitivity.table(args.variants, seeds, options))
        say(
            f"means of {counted(args.seeds, 'seed')}; one setting changed at a time; misses always count "
            "against the target, not against the threshold"
        )
        return OK
    table = sim.compare_hosts(args.variants, seeds, **options)
    figures = list(sim.HOST_COLUMNS)[1:]
    cells = [[name, *(with_spread(row, name) for row in table)] for name in figures]
    say(format_table(["figure", *table.column("variant")], cells))
    spread = any("[" in cell for row in cells for cell in row[1:])
    brackets = " and, in brackets, the lowest and the highest of them" if spread else ""
    say(
        f"means of {counted(args.seeds, 'seed')}{brackets}; see gpusched simulate-host --help for the figures"
    )
    if args.audit or args.config_output or args.plot:
        log, config = sim.record_host(args.first_seed, variant=args.variants[-1], **options)
        config_text = json.dumps(config, indent=2) + "\n"
        for path, text in ((args.audit, log), (args.config_output, config_text)):
            with open_log(path) as file:
                if file is not None:
                    file.write(text)
        if args.plot:
            from .. import plotting

            save_figure(args.plot, lambda: plotting.plot_control(log, config))
    return OK


def replay_audit_options(p: Parser) -> None:
    p.add("log", "the audit log", metavar="LOG.jsonl")
    p.add("--config", "the configuration of this log", required=True, metavar="FILE.json")
    flag(p, "--dry-run", "the log is of a dry run")
    p.add("--plot", "also draw the timeline", metavar="OUT.png")


def replay_audit(args: argparse.Namespace) -> int:
    require_writable(args.plot, inputs=[args.log, args.config])
    config = read_config(args.config, args.dry_run)
    log = read_text(args.log)
    with of_file(args.log):
        result = control.replay_audit(log, config)
    if args.plot:
        from .. import plotting

        save_figure(args.plot, lambda: plotting.plot_control(log, config))
    if result.first_difference < 0 and result.windows == 0:
        say(f"{args.log}: no windows")
        return FAILED
    if result.first_difference < 0:
        say(
            f"{counted(result.windows, 'window')} and {counted(result.actions, 'action')} are the same, byte "
            "by byte"
        )
        return OK
    say(f"line {result.first_difference + 1} differs, after {counted(result.windows, 'equal window')}")
    say(f"recorded: {result.expected.rstrip()}")
    say(f"replayed: {result.found.rstrip()}")
    return FAILED
