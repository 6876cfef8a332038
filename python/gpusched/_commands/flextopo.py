"""The command `topology watch`: FlexTopo's agent."""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
from typing import Any

from .. import io, topology
from ..errors import BackendError, InvalidInput
from .arguments import Parser
from .shared import OK, given, read_mapping, require_writable, say

OPTIONS = ("name", "holders", "once", "interval_s", "poll_s", "kubectl")
"""Those that `topology show` does not have."""


def watch_options(p: Parser) -> None:
    p.add_argument("--name", metavar="NODE", help="watch: of the object (default: with --this-machine the host's; a FILE needs one)")
    p.add_argument("--holders", metavar="FILE", help='watch: who holds what, such as {"team/pod": {"gpus": [0, 1], "cores": [0]}} (default: whoever does in the first reading)')
    p.add_argument("--once", action="store_const", const=True, help="watch: publish once and end (default: go on)")
    p.add_argument("--interval-s", "--interval", type=float, metavar="SECONDS", help="watch: read the hardware so often (default: 60)")
    p.add_argument("--poll-s", type=float, metavar="SECONDS", help="watch: look at the holders so often (default: 1)")
    p.add_argument("--kubectl", action="store_const", const=True, help="watch: publish with kubectl apply (default: to --output)")


def apply(document: dict[str, Any]) -> None:
    """Through kubectl, with its credentials; the object is this agent's alone."""
    command = ["kubectl", "apply", "--server-side", "--force-conflicts", "--field-manager=gpusched", "-f", "-"]
    try:
        done = subprocess.run(command, input=json.dumps(document), capture_output=True, text=True, timeout=60, check=False)
    except OSError as error:
        raise BackendError(f"kubectl: cannot be run: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise BackendError("kubectl: did not end within 60 s") from None
    if done.returncode != 0:
        raise BackendError(f"kubectl: {done.stderr.strip() or f'ended with {done.returncode}'}")


def write_whole(path: str, document: dict[str, Any]) -> None:
    """Readers of a file see the old object or the new one; what is no file, such as a pipe, is written to."""
    target = os.path.realpath(path)
    regular = os.path.isfile(target) or not os.path.exists(target)
    beside = f"{target}.new" if regular else target
    try:
        with open(beside, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)
            file.write("\n")
        if regular:
            os.replace(beside, target)
    except OSError as error:
        raise BackendError(f"{path}: cannot be written: {error.strerror}") from None


def watch_topology(args: argparse.Namespace) -> int:
    require_writable(args.output, inputs=[args.file, args.holders])
    if args.this_machine == (args.file is not None):
        raise InvalidInput("topology watch: expected either a FILE or --this-machine")
    if args.name is None and not args.this_machine:
        raise InvalidInput("--name: missing; a FILE does not say which node the machine is")
    if args.kubectl and args.output is not None:
        raise InvalidInput("--output: the object is published with kubectl; expected one of them")
    if not args.once and not args.kubectl and args.output is None:
        raise InvalidInput("topology watch: expected --output, --kubectl, or --once")
    if args.once and (args.interval_s is not None or args.poll_s is not None):
        raise InvalidInput("--interval-s, --poll-s: nothing is repeated with --once")

    def read() -> io.HardwareReading:
        return io.read_this_machine() if args.this_machine else io.read_hardware(args.file)

    def publish(document: dict[str, Any]) -> None:
        if args.kubectl:
            apply(document)
        elif args.output is not None:
            write_whole(args.output, document)
        else:
            print(json.dumps(document, indent=1))

    name = args.name or socket.gethostname().lower()
    holders = (lambda: read_mapping(args.holders)) if args.holders is not None else None
    agent = topology.FlexTopoAgent(name, read, publish, holders)
    if args.once:
        agent.check_hardware()
        agent.check_holders()
        agent.publish()
        if args.kubectl or args.output is not None:
            say(f"published {name}")
    else:
        agent.run(**given(args, "interval_s", "poll_s"), tell=lambda text: print(text, flush=True))
    return OK
