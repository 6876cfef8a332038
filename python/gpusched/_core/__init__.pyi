# Written by python/bindings/generate_stubs.py from the bindings; do not edit.

from collections.abc import Sequence
from os import PathLike
from typing import Any

from . import admission as admission
from . import allocation as allocation
from . import consolidation as consolidation
from . import control as control
from . import fragmentation as fragmentation
from . import io as io
from . import milp as milp
from . import model as model
from . import preemption as preemption
from . import serving as serving
from . import sim as sim
from . import topology as topology
from . import verify as verify

__version__: str
deepest_nesting: int
keywords: dict[str, list[dict[str, str]]]

def did_you_mean(name: str, known: Sequence[str]) -> str: ...
def json_text(document: Any, source: str) -> str: ...
def read_mapping(path: str | PathLike[str]) -> dict[str, Any]: ...
