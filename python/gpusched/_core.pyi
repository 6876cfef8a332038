# The modules around the extension have stubs of their own and re-export all of it.
from os import PathLike
from types import ModuleType
from typing import Any

__version__: str
keywords: dict[str, list[dict[str, str]]]

def did_you_mean(name: str, known: list[str]) -> str: ...
def read_mapping(path: str | PathLike[str]) -> dict[str, Any]: ...

allocation: ModuleType
consolidation: ModuleType
fragmentation: ModuleType
io: ModuleType
model: ModuleType
preemption: ModuleType
serving: ModuleType
sim: ModuleType
topology: ModuleType
verify: ModuleType
