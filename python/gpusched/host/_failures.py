"""Failures of the machine's interfaces, by the names that the decision core has for them."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

from ..errors import BackendError


class Failure(Exception):
    """A call to the hardware, the kernel or a program failed. `status` is one of the decision core's
    `BackendStatus`.
    """

    def __init__(self, status: str, detail: str = "", code: int = 0) -> None:
        super().__init__(f"{status}: {detail}" if detail else status)
        self.status = status
        self.code = code  # of NVML, or a number of errno


class UnknownState(BackendError):
    """The state of the machine is not known. An operator must look; starting again does not help."""


# After these, nothing more is tried until an operator has looked.
FREEZING = frozenset({"gpu_is_lost", "timeout", "unknown", "invalid_state"})

_BY_ERRNO = {
    "no_permission": (errno.EACCES, errno.EPERM, errno.EROFS, errno.ELOOP),
    "not_found": (errno.ENOENT, errno.ENODEV, errno.ENXIO, errno.ESRCH, errno.ENOTDIR),
    "in_use": (errno.EBUSY, errno.ETXTBSY),
    "insufficient_resources": (errno.ENOSPC, errno.ENOMEM, errno.EDQUOT, errno.EMFILE),
    "not_supported": (errno.EINVAL, errno.EOPNOTSUPP, errno.ERANGE),
    "timeout": (errno.ETIMEDOUT,),
}
_STATUS = {number: status for status, numbers in _BY_ERRNO.items() for number in numbers}


def of_system(error: OSError) -> Failure:
    """The failure that an error of the operating system stands for."""
    return Failure(_STATUS.get(error.errno or 0, "unknown"), str(error), error.errno or 0)


def attempt(call: Callable[..., Any], *arguments: Any) -> str:
    """Calls a function. Returns "ok", or the status of its failure."""
    try:
        call(*arguments)
    except Failure as failure:
        return failure.status
    return "ok"
