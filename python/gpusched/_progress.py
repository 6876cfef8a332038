# SPDX-License-Identifier: Apache-2.0
"""The progress bar behind `progress=True`."""

from __future__ import annotations

import sys
from typing import Any


class ProgressBar:
    """Shows one bar per phase, with tqdm if it is installed and as plain text otherwise."""

    def __init__(self) -> None:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            tqdm = None
        self._tqdm = tqdm
        self._bar: Any = None
        self._phase = ""

    def __call__(self, phase: str, done: int, total: int) -> None:
        if self._tqdm is None:
            percent = f" {100 * done // total:3d} %" if total > 0 else ""
            print(f"\r{phase}{percent}   ", end="", file=sys.stderr, flush=True)
            self._phase = phase
            return
        if self._bar is None or phase != self._phase:
            if self._bar is not None:
                self._bar.close()
            self._bar = self._tqdm(desc=phase or None, total=total or None, leave=False)
            self._phase = phase
        self._bar.total = total or None
        self._bar.n = done
        self._bar.refresh()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._phase:
            print(file=sys.stderr)
