# The modules around the extension have stubs of their own and re-export all of it.
from types import ModuleType

__version__: str
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
