# SPDX-License-Identifier: Apache-2.0
"""Failures of the machine's interfaces, by the names that the decision core has for them."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
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
RETRIES = 3  # of something in use


def _by_number(numbers: Mapping[str, tuple[int, ...]]) -> dict[int, str]:
    return {number: status for status, those in numbers.items() for number in those}


_BY_ERRNO = _by_number(
    {
        "no_permission": (errno.EACCES, errno.EPERM, errno.EROFS, errno.ELOOP),
        "not_found": (errno.ENOENT, errno.ENODEV, errno.ENXIO, errno.ESRCH, errno.ENOTDIR),
        "in_use": (errno.EBUSY, errno.ETXTBSY),
        "insufficient_resources": (errno.ENOSPC, errno.ENOMEM, errno.EDQUOT, errno.EMFILE),
        "not_supported": (errno.EINVAL, errno.EOPNOTSUPP, errno.ERANGE),
        "timeout": (errno.ETIMEDOUT,),
    }
)

# Return codes of NVML, which are also the exit codes of nvidia-smi. All others are "unknown".
BY_NVML_CODE = _by_number(
    {
        "not_supported": (3, 13, 25, 26),  # also FUNCTION_NOT_FOUND, VERSION_MISMATCH, DEPRECATED
        "no_permission": (4, 17),  # 17: the device is blocked, as by a control group
        "not_found": (6, 28),
        "timeout": (10,),
        "gpu_is_lost": (15,),
        "reset_required": (16,),
        "in_use": (19,),
        "insufficient_resources": (20, 23),
        "invalid_state": (29,),
    }
)


def of_system(error: OSError) -> Failure:
    """The failure that an error of the operating system stands for."""
    return Failure(_BY_ERRNO.get(error.errno or 0, "unknown"), str(error), error.errno or 0)


def attempt(call: Callable[..., Any], *arguments: Any) -> str:
    """Calls a function. Returns "ok", or the status of its failure."""
    try:
        call(*arguments)
    except Failure as failure:
        return failure.status
    return "ok"


def patiently(call: Callable[[], object], wait: Callable[[int], object]) -> None:
    """Calls a function. If something is in use it waits and calls again, up to `RETRIES` times."""
    for k in range(RETRIES + 1):
        try:
            call()
            return
        except Failure as failure:
            if failure.status != "in_use" or k == RETRIES:
                raise
        wait(k)
