# SPDX-License-Identifier: Apache-2.0
"""GPU instances through `nvidia-smi mig`: readers of its output, and a `MigBackend` that runs it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from xml.etree import ElementTree

from ..errors import BackendError
from ._failures import BY_NVML_CODE, Failure
from ._mig import MigBackend, Row
from ._places import Instance, profiles
from ._programs import Programs, Result

# Texts come before codes, because not every driver sets the code.
_TEXTS = {
    "In use by another client": "in_use",
    "Insufficient Resources": "insufficient_resources",
    "Insufficient Permissions": "no_permission",
    "Not Found": "not_found",
    "Not Supported": "not_supported",
    "GPU is lost": "gpu_is_lost",
    "requires reset": "reset_required",
    "pending enable": "reset_required",
}
_LGI = re.compile(r"\|\s*(\d+)\s+MIG\s+\S+\s+(\d+)\s+(\d+)\s+(\d+):(\d+)\s*\|?\s*$")
_LGIP = re.compile(r"\|\s*\d+\s+MIG\s+\S+\s+(\d+)\s+\d+/\d+\s+([\d.]+)\s+\S+\s+\d+\s")
_CREATED = re.compile(r"^\s*Successfully created GPU instance ID\s+(\S+)", re.MULTILINE)


def status_of(result: Result) -> str:
    """The failure that an exit code and output of `nvidia-smi` stand for. Codes are those of NVML."""
    if result.timed_out:
        return "timeout"
    if result.code == 0:
        return "ok"
    found = next((status for text, status in _TEXTS.items() if text in result.output), None)
    return found or BY_NVML_CODE.get(result.code, "unknown")


def _rows(pattern: re.Pattern[str], text: str) -> list[tuple[str, ...]]:
    """Rows that begin with a GPU's number. Borders, headings and second lines, which hold only numbers
    further right, do not.
    """
    out = []
    for line in text.splitlines():
        if re.match(r"\|\s*\d.*MIG |\|\s{0,10}\d", line):
            match = pattern.match(line)
            if match is None:
                raise Failure("unknown", f"nvidia-smi mig: row cannot be read: {line}")
            out.append(match.groups())
    return out


def parse_lgi(text: str) -> list[tuple[int, Row]]:
    """The rows of `nvidia-smi mig -lgi`, with the GPU. Raises `Failure` for a row that cannot be read."""
    found = [tuple(map(int, row)) for row in _rows(_LGI, text)]
    return [(gpu, Row(profile, number, start, size)) for gpu, profile, number, start, size in found]


def parse_lgip(text: str) -> dict[int, float]:
    """GiB by profile id in the output of `nvidia-smi mig -lgip` for one GPU. Raises as `parse_lgi`."""
    return {int(number): float(gib) for number, gib in _rows(_LGIP, text)}


def parse_created(text: str) -> set[int]:
    """The ids of the GPU instances that the output of `-cgi` reports as created; -1 for an id that cannot be
    read.
    """
    return {int(number) if number.isdecimal() else -1 for number in _CREATED.findall(text)}


def parse_memory(xml: str) -> dict[int, float]:
    """MiB that are not free, by id of the GPU instance, in the output of `nvidia-smi -q -x` for one GPU.

    Devices without a memory figure (`N/A`) are left out. Raises `Failure` if a device cannot be read.
    """

    def mib(device: ElementTree.Element, field: str) -> float | None:
        match = re.fullmatch(r"([\d.]+) MiB", device.findtext(f"fb_memory_usage/{field}", ""))
        return float(match.group(1)) if match else None

    out = {}
    for text in re.findall(r"<mig_device>.*?(?:</mig_device>|$)", xml, re.DOTALL):
        try:
            device = ElementTree.fromstring(text)
            number = int(device.findtext("gpu_instance_id", ""))
        except (ElementTree.ParseError, ValueError):
            raise Failure("unknown", f"nvidia-smi -q -x: MIG device cannot be read: {text[:200]}") from None
        total, free = mib(device, "total"), mib(device, "free")
        if total is not None and free is not None and 0 <= free <= total < 1e9:
            out[number] = total - free
    return out


class SmiMig(MigBackend):
    """GPU instances by `nvidia-smi`. `pci`: the addresses of the GPUs; empty: the host's indices are those of
    nvidia-smi.
    """

    name = "nvidia-smi"

    def __init__(
        self,
        programs: Programs,
        devices: Sequence[str],
        owned: Iterable[Instance] = (),
        pci: Sequence[str] = (),
    ) -> None:
        super().__init__(devices, owned)
        self._programs = programs
        self._pci = pci

    def _memory_used(self, gpu: int) -> Mapping[Instance, float | str]:
        known = {self._known(gpu, row): row.id for row in self._rows(gpu)}
        used = parse_memory(self._checked(["-q", "-x"], gpu))
        return {one: used[number] for one, number in known.items() if one is not None and number in used}

    def _profile_sizes(self, gpu: int) -> Mapping[int, float]:
        found = parse_lgip(self._checked(["mig", "-lgip"], gpu))
        return {number: (gib - 0.005) * 1024 for number, gib in found.items()}  # it has hundredths of a GiB

    def _rows(self, gpu: int) -> list[Row]:
        try:
            found = parse_lgi(self._checked(["mig", "-lgi"], gpu))
        except Failure as failure:
            if failure.status == "not_found":
                return []
            raise
        if not self._pci:
            return [row for number, row in found if number == gpu]
        # Asked by address, a GPU answers with its own index. The answer must be about one GPU.
        if len({number for number, _ in found}) > 1:
            raise Failure("unknown", "nvidia-smi listed several GPUs for one address")
        return [row for _, row in found]

    def _make(self, new: Instance) -> tuple[str, set[int]]:
        number = profiles(self.devices[new.gpu])[new.profile].id
        result = self._run(["mig", "-cgi", f"{number}:{new.slice}", "-C"], new.gpu)
        return status_of(result), parse_created(result.output)

    def _give_compute(self, instance: Instance, number: int) -> None:
        try:
            self._checked(["mig", "-lci", "-gi", str(number)], instance.gpu)
        except Failure as failure:
            if failure.status != "not_found":
                raise
            self._checked(["mig", "-cci", "-gi", str(number)], instance.gpu)

    def _remove(self, gpu: int, number: int) -> None:
        status = status_of(self._run(["mig", "-dci", "-gi", str(number)], gpu))
        if status not in ("ok", "not_found"):
            raise Failure(status, "destruction of a compute instance")
        self._checked(["mig", "-dgi", "-gi", str(number)], gpu)

    def _run(self, what: Sequence[str], gpu: int) -> Result:
        try:
            return self._programs.run(["nvidia-smi", *what, "-i", self._pci[gpu] if self._pci else str(gpu)])
        except BackendError as error:
            return Result(127, str(error))  # as a shell reports a program that it cannot start

    def _checked(self, what: Sequence[str], gpu: int) -> str:
        result = self._run(what, gpu)
        status = status_of(result)
        if status != "ok":
            raise Failure(status, f"nvidia-smi {' '.join(what)}")
        return result.output
