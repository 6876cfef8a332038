"""The command `completion`."""

from __future__ import annotations

import argparse

from .._optional import require
from .arguments import Parser
from .shared import OK, say


def completion_options(p: Parser) -> None:
    p.add_argument("shell", choices=("bash", "zsh"), help="the shell that reads the script")


def completion(args: argparse.Namespace) -> int:
    """Prints the script with which a shell completes commands, options, names and files."""
    say(require("shtab", "completion").complete(args.parser, args.shell))
    return OK
