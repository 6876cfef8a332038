"""The command `completion`."""

from __future__ import annotations

import argparse

from .._optional import require
from .shared import OK, say


def completion(args: argparse.Namespace) -> int:
    """Prints the script with which a shell completes commands, options, names and files."""
    say(require("shtab", "completion").complete(args.parser(), args.shell))
    return OK
