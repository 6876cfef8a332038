# SPDX-License-Identifier: Apache-2.0
"""Inputs of the controller: latencies, counters, GPUs, configurations and journals; and its outputs."""

from __future__ import annotations

import contextlib
import http.server
import json
import logging
import math
import os
import re
import socket
import sqlite3
import stat
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import fake_nvml
import gpusched as gs
import pytest
from control_host import Host
from gpusched import cli
from gpusched.host import Configuration, Instance, Journal, Lease, TenantEntry, _service, _signals, _smi
from gpusched.host._config import Latency, Live, Tenant, read_live
from gpusched.host._discover import device_of, pcie_bytes_per_s
from gpusched.host._failures import Failure, attempt
from gpusched.host._latency import (
    LatencyFile,
    LatencyHistogram,
    LatencySocket,
    Lines,
    Window,
    histogram_count_below,
    histogram_quantile,
    parse_histogram,
)
from gpusched.host._mig import NoMig, Row
from gpusched.host._nvml import Nvml
from gpusched.host._programs import Result
from host_world import World
from hypothesis import given, settings
from hypothesis import strategies as st

INF = math.inf


def append(path: Path, text: str) -> None:
    with open(path, "a", encoding="utf-8") as file:
        file.write(text)


def tree(folder: Path, files: dict[str, str]) -> None:
    """Files of a folder; a text that begins with > is a link to what it names."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith(">"):
            path.symlink_to(folder / text[1:])
        else:
            path.write_text(text, encoding="utf-8")


# ---- latencies ----


def test_lines_of_latencies() -> None:
    lines = Lines(15)
    lines.feed(b"10\n20.5\r\n+3\n  7 \n")
    window = lines.end_window(True)
    assert (window.count, window.misses, window.arrived, window.ignored) == (3, 1, 3, 0)
    assert window.quantiles == {"p50_ms": 10, "p95_ms": 20.5, "p99_ms": 20.5, "p999_ms": 20.5}
    lines.feed(b"1")
    assert lines.end_window(True).count == 0  # the line has not ended
    lines.feed(b"5\nx\n1 2\n-3\n1e9\nnan\ninf\n+\n+-1\n++2\n\n")
    lines.feed(b"9" * 700)
    lines.feed(b"9" * 700 + b"\n4\n")
    lines.feed(b"\0\xff\xfe\n")
    window = lines.end_window(True)
    assert (window.count, window.misses, window.arrived, window.ignored) == (2, 0, 0, 11)
    # Three windows count for quantiles, one for counts.
    for _ in range(3):
        window = lines.end_window(True)
    assert window.count == 0 and window.quantiles == {}
    assert Lines(15).end_window(True).arrived is None


@given(st.lists(st.floats(0, 1e7), min_size=1, max_size=300))
def test_a_quantile_is_the_smallest_sample_with_that_part_at_or_below(samples: list[float]) -> None:
    lines = Lines(15)
    lines.feed("".join(f"{sample!r}\n" for sample in samples).encode())
    window = lines.end_window(True)
    assert window.count == len(samples) and window.misses == sum(sample > 15 for sample in samples)
    for name, q in (("p50_ms", 0.5), ("p99_ms", 0.99)):
        value = window.quantiles[name]
        assert value in samples
        assert sum(sample <= value for sample in samples) >= q * len(samples) - 1e-9
        assert sum(sample < value for sample in samples) < q * len(samples) + 1e-9


@given(st.binary(max_size=2000), st.lists(st.integers(0, 2000), max_size=5))
def test_any_bytes_in_any_pieces_are_lines(text: bytes, cuts: list[int]) -> None:
    whole, pieces = Lines(15), Lines(15)
    whole.feed(text + b"\n")
    ends = sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})
    for begin, end in zip(ends, ends[1:]):
        pieces.feed(text[begin:end])
    pieces.feed(b"\n")
    assert whole.end_window(True) == pieces.end_window(True)


def test_the_tail_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "t1.log"
    append(path, "900\n901\n")
    file = LatencyFile(str(path), 15)
    assert file.window().count == 0  # what was there before
    append(path, "10\n20\n3")
    assert file.window().count == 2
    append(path, "0\n")
    window = file.window()
    assert (window.known, window.count, window.misses) == (True, 1, 1)  # 30
    # Rotated: the last lines of the old one, all of the new one.
    append(path, "40\n")
    path.rename(tmp_path / "t1.log.1")
    append(path, "50\n51\n")
    assert file.window().count == 3
    path.write_text("6\n", encoding="utf-8")  # truncated
    window = file.window()
    assert (window.count, window.misses) == (1, 0)
    path.unlink()
    assert not file.window().known and not file.window().known
    append(path, "12\n")
    assert file.window().count == 1
    file.close()
    late = LatencyFile(str(tmp_path / "later.log"), 15)
    assert not late.window().known
    append(tmp_path / "later.log", "12\n13\n")
    assert late.window().count == 2  # it came meanwhile: all of it is new
    late.close()
    assert not LatencyFile(str(tmp_path), 15).window().known


def send(path: Path, text: bytes) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(text, str(path))


def window_of(source: LatencySocket, count: int) -> Window:
    """The window once so many requests and lines have come."""
    end = time.monotonic() + 10
    while True:
        with contextlib.suppress(AttributeError):
            if len(source._server.waiting) >= count or time.monotonic() > end:  # type: ignore[union-attr]
                return source.window()
        time.sleep(0.005)


def test_datagrams(tmp_path: Path) -> None:
    path = tmp_path / "t1.sock"
    source = LatencySocket(str(path), 15)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666
    for text in (b"10\n20\n", b"30", b"+4\n", b"\xff\0garbage", b"1\n" * 32000 + b"2 " * 2000):
        send(path, text)
    window = window_of(source, 5)
    assert (window.count, window.misses, window.arrived, window.ignored) == (3 + 32000, 2, 4, 2)
    # A service never waits for the end of a window.
    began = time.monotonic()
    for _ in range(2000):
        send(path, b"1\n")
    assert time.monotonic() - began < 5 and window_of(source, 2000).count == 2000
    path.unlink()
    assert source.window().known
    send(path, b"11\n")
    assert window_of(source, 1).count == 1
    # A socket that is served stays, and one that is left behind is replaced.
    other = LatencySocket(str(path), 15)
    assert not other.window().known
    source.close()
    assert not path.exists()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as left:
        left.bind(str(path))
    assert other.window().known
    other.close()
    path.write_text("a file", encoding="utf-8")
    assert not LatencySocket(str(path), 15).window().known and path.read_text(encoding="utf-8") == "a file"


def test_quantiles_of_a_histogram() -> None:
    buckets = {0.1: 10.0, 0.5: 10.0, 1.0: 30.0, INF: 40.0}
    assert histogram_quantile(0.5, buckets) == pytest.approx(0.75)
    assert histogram_quantile(0.25, buckets) == pytest.approx(0.1)
    assert histogram_quantile(0.1, buckets) == pytest.approx(0.04)
    assert histogram_quantile(0.99, buckets) == 1.0
    assert histogram_quantile(0.5, {-1.0: 5.0, INF: 5.0}) == -1.0
    assert histogram_quantile(0.0, buckets) == 0.0
    for bad in ({}, {INF: 3.0}, {1.0: 3.0, 2.0: 3.0}, {1.0: 0.0, INF: 0.0}):
        assert math.isnan(histogram_quantile(0.5, bad)) and histogram_count_below(1.0, bad) == 0
    assert math.isnan(histogram_quantile(1.5, buckets))
    # A scrape that was torn: counts never fall with the bound.
    assert histogram_quantile(0.5, {1.0: 8.0, 2.0: 6.0, INF: 10.0}) == pytest.approx(0.625)
    assert histogram_count_below(0.75, buckets) == pytest.approx(20)
    assert histogram_count_below(0.05, buckets) == pytest.approx(5)
    assert histogram_count_below(1.0, buckets) == 30 and histogram_count_below(9.0, buckets) == 30
    assert histogram_count_below(0.0, buckets) == 0
    assert histogram_count_below(-1.0, {-1.0: 5.0, INF: 5.0}) == 5


@given(st.dictionaries(st.floats(0.001, 100), st.integers(0, 50), min_size=1, max_size=8), st.floats(0, 1))
def test_a_quantile_has_its_part_of_a_histogram_below(steps: dict[float, int], q: float) -> None:
    total, buckets = 0, {}
    for bound, count in sorted(steps.items()):
        total += count
        buckets[bound] = float(total)
    buckets[INF] = float(total)
    value = histogram_quantile(q, buckets)
    if total == 0:
        assert math.isnan(value)
    elif value not in buckets:
        assert histogram_count_below(value, buckets) == pytest.approx(q * total, abs=1e-6 * total)


PAGE = """# TYPE ttft histogram
ttft_bucket{le="0.01",model="a \\"b\\"",gpu="0"} 10
ttft_bucket{le="0.02",model="a \\"b\\"",gpu="0"} 90 1700000000
ttft_bucket{le="+Inf",model="a \\"b\\"",gpu="0"} 100 # {trace="x"} 0.5
ttft_bucket{le="0.01",model="c",gpu="0"} 1
ttft_bucket{le="0.01",model="c"
ttft_bucket{le="x",model="c"} 1
ttft_bucket{model="c"} 1
ttft_bucket{le="1",model="c"} -1
ttft_bucket_other{le="1"} 3
ttft_sum 5
"""


def test_the_text_format_of_prometheus() -> None:
    series, ignored = parse_histogram(PAGE, "ttft", {"gpu": "0"})
    assert ignored == 4 and len(series) == 2
    assert series[("gpu", "0"), ("model", 'a "b"')] == {0.01: 10.0, 0.02: 90.0, INF: 100.0}
    assert parse_histogram(PAGE, "ttft", {"gpu": "1"})[0] == {}


def page(low: int, total: int, replica: str = "a") -> str:
    values = {"0.01": low, "0.02": total, "+Inf": total}
    return "".join(f'ttft_bucket{{le="{bound}",r="{replica}"}} {count}\n' for bound, count in values.items())


def test_a_histogram_that_grows_is_reset_vanishes_and_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "page"
    source = LatencyHistogram(str(path), "ttft", {}, 1000.0, 15.0)
    assert not source.window().known  # no file
    path.write_text(page(100, 200), encoding="utf-8")
    assert not source.window().known  # all of its past
    path.write_text(page(110, 220) + page(1000, 1000, "b"), encoding="utf-8")
    window = source.window()
    assert (window.known, window.count, window.misses) == (True, 20, 5)
    assert window.quantiles["p50_ms"] == pytest.approx(10.0)
    path.write_text(page(5, 5) + page(1010, 1010, "b"), encoding="utf-8")  # a restarted; b goes on
    assert source.window().count == 10
    path.write_text("", encoding="utf-8")
    assert not source.window().known
    path.write_text(page(10, 20), encoding="utf-8")
    assert not source.window().known
    path.write_text(page(10, 20), encoding="utf-8")
    window = source.window()
    assert window.known and window.count == 0 and window.quantiles == {}


class Pages(http.server.BaseHTTPRequestHandler):
    text = ""
    wait_s = 0.0

    def do_GET(self) -> None:
        time.sleep(self.wait_s)
        with contextlib.suppress(OSError):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(self.text.encode())

    def log_message(self, *_: Any) -> None: ...


def test_a_histogram_is_scraped_from_its_service() -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    source = LatencyHistogram(f"http://127.0.0.1:{server.server_port}/metrics", "ttft", {}, 1000.0, 15.0)
    try:
        Pages.text = page(100, 200)
        assert not source.window().known
        Pages.text = page(110, 220)
        source.prepare()  # shortly before the window ends
        while not source._page.done():  # type: ignore[union-attr]
            time.sleep(0.01)
        Pages.text = "garbage"
        assert source.window().count == 20
        # A slow service gives a window that is missing, and its answer counts for the next.
        Pages.wait_s, Pages.text = 0.3, page(120, 230)
        with mock.patch.object(LatencyHistogram, "TIMEOUT_S", 0.05):
            assert not source.window().known
    finally:
        server.shutdown()
        server.server_close()
    for _ in range(3):  # the answer of before, then none
        window = source.window()
    assert not window.known
    source.close()


# ---- counters ----


def test_interrupts_of_devices() -> None:
    text = (
        "           CPU0       CPU2\n  9:   5  7  IO-APIC  acpi\n LOC: 100 100 Local timer\n"
        " 11:  3  3  GICv3  arch_timer\n 12: 1 1 chip\n"
    )
    assert _signals.interrupts(text) == [6, 0, 8]
    for bad in ("", "x\n", "CPU0 CPU1\n 1: 5\n", "CPU0\n 1: x chip\n"):
        with pytest.raises(ValueError):
            _signals.interrupts(bad)


def test_rates() -> None:
    rate = _signals.Rate()
    assert rate.update(10, 1) is None and rate.update(30, 3) == 10
    assert rate.update(20, 4) is None  # it was reset
    assert rate.update(40, 4) is None  # the same moment
    assert rate.update(None, 5) is None and rate.update(50, 6) is None and rate.update(52, 7) == 2
    assert rate.update(float(1 << 63), 8) is None


HOST = {
    "roots": [{}, {}],
    "gpus": [{"root": 0}, {"root": 0}],
    "core_numa": [0, 0],
    "numa_nodes": 2,
    "tenants": [
        {"name": "T1", "protected": True, "tau_ms": 15.0, "gpu": -1},
        {"name": "T2", "protected": False, "tau_ms": 15.0, "gpu": 0},
    ],
}


def test_the_signals_of_a_window(tmp_path: Path) -> None:
    def tick(n: int) -> None:
        row = f"  eth0: {n} 0 0 0 0 0 0 0 {n} 0 0 0 0 0 0 0\n"
        tree(
            tmp_path,
            {
                "cg/t2/io.stat": f"259:0 rbytes={n * 1000} wbytes=0\n8:0 rbytes={n}\n",
                "proc/interrupts": f"CPU0 CPU1\n 1: {n} {2 * n} chip\n",
                "proc/diskstats": f" 259 0 nvme0n1 1 0 {n} 0 0 0 {n} 0 0 0 0\n",
                "proc/net/dev": "Inter-|\n face |\n" + row,
            },
        )

    live = Live(cgroups=str(tmp_path / "cg"), proc=str(tmp_path / "proc"), layout_every=2)
    live.numa_disks, live.root_nics = [["nvme0n1"], ["gone"]], [["eth0"]]
    live.tenants = {
        "T1": Tenant(latency=Latency(file=str(tmp_path / "t1"))),
        "T2": Tenant(cgroup="t2", disks=["259:0"]),
    }
    append(tmp_path / "t1", "1\n")
    mig = NoMig(["A100-40GB"] * 2, {Instance(0, "2g", 0)})
    (tmp_path / "world").mkdir()
    world = World(tmp_path / "world")
    with world.instrumented():
        nvml = Nvml()
        signals = _signals.Signals(HOST, live, mig, nvml, [nvml.find(0), nvml.find(1)], 2.0)
        tick(0)
        first = signals.read(10.0)
        assert first["tenants"]["T1"]["completed_per_s"] == 0 and first["roots"][0]["bytes_per_s"] is None
        assert first["gpus"][0] == {"lost": False, "readable": True, "instances": [("2g", 0)]}
        tick(100)
        append(tmp_path / "t1", "5\n20\n+4\n")
        world.nvml.pcie += 500
        second = signals.read(12.0)
    t1, t2 = second["tenants"]["T1"], second["tenants"]["T2"]
    assert (t1["count"], t1["misses"], t1["completed_per_s"], t1["offered_per_s"]) == (2, 1, 1.0, 2.0)
    assert (t2["io_bytes_per_s"], t2["io_attribution"]) == (50_000, "measured")
    # Both GPUs and both directions.
    assert second["roots"] == [{"bytes_per_s": 1000.0, "replays": 0.0}, {"bytes_per_s": 0.0, "replays": 0.0}]
    assert second["numa_io_bytes_per_s"] == [51_200, None] and second["nic_bytes_per_s"] == [100, None]
    assert second["irq_per_s"] == [50, 100] and not signals.looked
    with mock.patch.object(mig, "read", side_effect=Failure("gpu_is_lost")):
        assert signals.read(14.0)["gpus"][0]["lost"]
        assert signals.read(16.0)["gpus"][0] == {"lost": True, "readable": False, "instances": [("2g", 0)]}
    (tmp_path / "cg/t2/io.stat").unlink()
    (tmp_path / "proc/diskstats").write_text("garbage", encoding="utf-8")
    last = signals.read(18.0)
    assert last["tenants"]["T2"] == {"present": False} and last["numa_io_bytes_per_s"] == [None, None]
    assert last["gpus"][0]["readable"]
    signals.close()


def test_traffic_that_moves_with_the_block_io_is_inferred(tmp_path: Path) -> None:
    (tmp_path / "t2").mkdir()
    live = Live(cgroups=str(tmp_path), proc=str(tmp_path))
    live.tenants = {"T1": Tenant(), "T2": Tenant(cgroup="t2")}
    signals = _signals.Signals(HOST, live, NoMig(["A100-40GB"] * 2), None, [], 2.0)
    total, tenant = 0, {}
    for window in range(60):
        busy = 1000 * (window % 7)
        total += busy
        (tmp_path / "t2/io.stat").write_text(f"8:0 rbytes={total} wbytes=0\n", encoding="utf-8")
        with mock.patch.object(signals, "_roots", lambda busy=busy: [{"bytes_per_s": 5.0 * busy + 100}, {}]):
            tenant = signals.read(float(window))["tenants"]["T2"]
    assert tenant["pcie_attribution"] == "inferred" and tenant["pcie_bytes_per_s"] == tenant["io_bytes_per_s"]


def test_counters_of_nvml(tmp_path: Path) -> None:
    world = World(tmp_path)
    with world.instrumented():
        nvml = Nvml()
        gpu = nvml.find(0)
        assert nvml.pcie_bytes(gpu) == 1 and nvml.pcie_replays(gpu) == 5 and nvml.pcie_rate(gpu) == 200_000
        world.nvml.field_codes = [0, 3]  # each field has its own result
        assert attempt(nvml.pcie_bytes, gpu) == "not_supported"
        assert attempt(nvml.call, "nvmlDeviceGetNumaNodeId", gpu) == "not_supported"  # this driver lacks it
        assert attempt(nvml.find, 7) == "not_found" and attempt(nvml.find, "0000:00:00.0") == "not_found"
        world.nvml.lost = True
        assert attempt(nvml.pcie_replays, gpu) == attempt(nvml.instances, gpu) == "gpu_is_lost"
    world.nvml.missing.add("nvmlInitWithFlags")
    with fake_nvml.installed(world.nvml), pytest.raises(gs.BackendError, match="NVML does not start"):
        Nvml()


# ---- nvidia-smi ----

LGI = """+-------------------------------------------------------+
| GPU instances:                                        |
| GPU   Name             Profile  Instance   Placement  |
|                          ID       ID       Start:Size |
|=======================================================|
|   0  MIG 1g.6gb          14        3          0:1     |
+-------------------------------------------------------+
|   0  MIG 2g.12gb          5        2          2:2     |
+-------------------------------------------------------+
"""


def real(name: str) -> str:
    """Output of a real driver, if this machine has such files."""
    path = Path(os.environ.get("GPUSCHED_DATA", Path(__file__).parents[4] / "shared/data")) / "mig" / name
    if not path.exists():
        pytest.skip("NO RECORDED OUTPUT: set GPUSCHED_DATA")
    return path.read_text(encoding="utf-8")


def test_output_of_nvidia_smi() -> None:
    assert _smi.parse_lgi(LGI) == [(0, Row(14, 3, 0, 1)), (0, Row(5, 2, 2, 2))]
    assert _smi.parse_lgi("No GPU instances found: Not Found\n") == []
    for bad in ("MIG 1g.5gb   x", "MIG 1g.5gb   19   7   0-1", "something else"):
        with pytest.raises(Failure, match="row cannot be read"):
            _smi.parse_lgi(f"|   0  {bad} |\n")
    created = "Successfully created GPU instance ID  9 on GPU  0 using profile MIG 3g.20gb (ID  9)\n"
    compute = "Successfully created compute instance ID  0 on GPU  0 GPU instance ID  9 using profile"
    assert _smi.parse_created(f"{created}{compute} MIG 3g.20gb\n") == {9}
    assert _smi.parse_created("Successfully created GPU instance ID on\n") == {-1}
    assert not _smi.parse_created("Unable\n")
    for result, status in (
        (Result(1, "Unable to destroy: In use by another client"), "in_use"),
        (Result(4), "no_permission"),
        (Result(2), "unknown"),
        (Result(0, "", True), "timeout"),
    ):
        assert _smi.status_of(result) == status


def test_memory_in_the_output_of_nvidia_smi() -> None:
    def device(number: str, total: str, free: str) -> str:
        memory = f"<fb_memory_usage><total>{total}</total><free>{free}</free></fb_memory_usage>"
        return f"<mig_device><gpu_instance_id>{number}</gpu_instance_id>{memory}</mig_device>"

    devices = [("1", "9856 MiB", "9000 MiB"), ("2", "N/A", "N/A"), ("3", "5 MiB", "9 MiB")]
    xml = f"<gpu>{''.join(device(*one) for one in devices)}</gpu>"
    assert _smi.parse_memory(xml) == {1: 856.0} and _smi.parse_memory("") == {}
    for bad in (device("x", "1 MiB", "1 MiB"), "<mig_device><gpu_instance_id>1"):
        with pytest.raises(Failure, match="MIG device cannot be read"):
            _smi.parse_memory(bad)


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("lgip_a30_24gb_driver535.txt", "A30-24GB"),
        ("lgip_h100_80gb.txt", "H100-80GB"),
        ("lgip_h200_141gb_partial.txt", "H200-141GB"),
    ],
)
def test_real_profiles_agree_with_the_tables(name: str, device: str) -> None:
    table = {profile.id: profile.memory_mib for profile in gs.control.mig_layout(device).profiles}
    found = _smi.parse_lgip(real(name))
    assert len(found) >= 5 and all(abs(table[number] / 1024 - gib) < 0.6 for number, gib in found.items())


def test_real_instances() -> None:
    three = [(0, Row(14, 3, 0, 1)), (0, Row(14, 4, 1, 1)), (0, Row(5, 2, 2, 2))]
    assert _smi.parse_lgi(real("lgi_a30_three_instances.txt")) == three
    assert _smi.parse_lgi(real("lgi_80gb_fragmented_0_1_5.txt"))[-1] == (3, Row(19, 12, 5, 1))


# ---- discovery ----


def test_a_machine_is_found_and_its_configuration_is_complete(tmp_path: Path) -> None:
    world = World(tmp_path)
    files = {}
    for k, (port, bdf) in enumerate((("0000:3a:00.0", "0000:3b:00.0"), ("0000:ae:00.0", "0000:af:00.0"))):
        device = f"sys/devices/pci{port[:7]}/{port}/{bdf}"
        files[f"{device}/numa_node"] = str(k)
        files[f"{device}/max_link_speed"] = "16.0 GT/s PCIe\n"
        files[f"{device}/current_link_width"] = "16\n"
        files[f"sys/bus/pci/devices/{bdf}"] = f">{device}"
        files[f"sys/devices/system/node/node{k}/cpulist"] = f"{k * 40}-{k * 40 + 39}\n"
    disk = "sys/devices/pci0000:3a/0000:3a:01.0/nvme/nvme0"
    nic = "sys/devices/pci0000:3a/0000:3a:00.0/0000:3c:00.0"
    groups = {11: "t1.service", 12: "t3.service", 13: "t1.service"}
    tree(
        tmp_path,
        {
            **files,
            **{f"proc/{pid}/cgroup": f"0::/system.slice/{group}\n" for pid, group in groups.items()},
            f"{disk}/nvme0n1/dev": "259:0\n",
            f"{disk}/numa_node": "1\n",
            "sys/block/nvme0n1": f">{disk}/nvme0n1",
            f"{nic}/uevent": "",
            "sys/class/net/eth7/device": f">{nic}",
        },
    )
    world.nvml.processes = [(11, 1), (12, 1), (13, 1), (14, 2)]
    with world.instrumented():
        machine = gs.host.discover(sys=str(tmp_path / "sys"), proc=str(tmp_path / "proc"))
    assert machine.source == "nvml" and machine.gpus[0].device == "A100-40GB"
    assert machine.gpus[0].instances == [("2g", 0), ("1g", 6)]
    assert machine.gpus[0].counters["pcie_replays"] == 5
    config = machine.config(journal=str(tmp_path / "j"))
    host, live = config["host"], config["live"]
    assert [gpu["root"] for gpu in host["gpus"]] == [0, 1] and host["roots"][1]["bridge"] == 1
    assert host["roots"][0]["capacity_bytes_per_s"] == pytest.approx(31.5e9, rel=0.01)
    assert len(host["core_numa"]) >= 80 and host["core_numa"][40] == 1 and host["numa_nodes"] == 2
    assert live["numa_disks"] == [[], ["nvme0n1"]] and live["root_nics"] == [["eth7"], []]
    assert live["pci"] == ["0000:3b:00.0", "0000:af:00.0"]
    assert [(one["name"], one.get("protected", False), one.get("client_of")) for one in host["tenants"]] == [
        ("t1", True, None), ("t3", False, "t1"), ("pid-14", True, None),
    ]  # fmt: skip
    assert live["tenants"]["t3"] == {"cgroup": "system.slice/t3.service", "disks": ["259:0"]}
    gs.host.Controller(config)  # and it is one
    assert "GPU 0: NVIDIA A100-SXM4-40GB, 0000:3b:00.0, NUMA node 0, MIG on, 2g at 0, 1g at 6" in str(machine)


def test_a_machine_by_nvidia_smi(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    table = (
        "0, NVIDIA H100 80GB HBM3, 00000000:3B:00.0, 81559, Enabled, Enabled\\n"
        "1, Tesla T4, 00000000:AF:00.0, 15360, [N/A], [N/A]"
    )
    rows = LGI.replace("14 ", "19 ").replace(" 5 ", "14 ").replace("\n", "\\n")
    host.script("nvidia-smi", f"case \"$1\" in mig) printf '{rows}';; *) printf '{table}\\n';; esac")
    host.borrow_programs(monkeypatch)
    machine = gs.host.discover(sys=str(host.folder), proc=str(host.folder))
    assert [(gpu.device, gpu.mig, gpu.instances) for gpu in machine.gpus] == [
        ("H100-80GB", "on", [("1g", 0), ("2g", 2)]), ("", "not supported", []),
    ]  # fmt: skip
    assert "Tesla T4 has no MIG table" in str(machine) and "'service' is an example to edit" in str(machine)
    config = machine.config(journal=str(host.folder / "j"))
    assert config["live"]["mig"] == "nvidia-smi" and config["host"]["tenants"][0]["start"]["profile"] == "1g"
    gs.host.Controller(config)
    host.script("nvidia-smi", "echo 'Driver/library version mismatch'; exit 18")
    with pytest.raises(gs.BackendError, match="ended with code 18: Driver/library version mismatch"):
        gs.host.discover()


def test_parts_and_links() -> None:
    for name, mib, device in (
        ("NVIDIA A100-SXM4-40GB", 40960, "A100-40GB"),
        ("NVIDIA A100 80GB PCIe", 81920, "A100-80GB"),
        ("NVIDIA A30", 24576, "A30-24GB"),
        ("NVIDIA H100 NVL", 95830, "H100-94GB"),
        ("NVIDIA H200", 143771, "H200-141GB"),
        ("Tesla T4", 15360, ""),
    ):
        assert device_of(name, mib) == device
    assert pcie_bytes_per_s("5.0 GT/s PCIe", "8") == 4e9
    assert pcie_bytes_per_s("64.0 GT/s PCIe", "16") == pytest.approx(121e9)
    assert pcie_bytes_per_s("Unknown", "16") == pcie_bytes_per_s("16.0 GT/s", "x") == 22e9


def test_without_a_gpu_every_command_says_so(
    host: Host, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    if Path("/usr/bin/nvidia-smi").exists():
        pytest.skip("this machine has a GPU")
    config = host.config()
    host.write("config.json", json.dumps(config))
    file = str(host.folder / "config.json")
    for options in (["--init"], ["--config", file], ["--config", file, "--dry-run"]):
        with fake_nvml.installed(None):
            assert cli.main(["control", *options]) == 1
        error = capsys.readouterr().err.splitlines()
        assert len(error) == 1 and error[0].startswith("gpusched: no NVIDIA GPU "), error
    assert cli.main(["control", "status", "--config", file]) == 0
    assert capsys.readouterr().out == "not running\n"


# ---- configurations ----


@pytest.fixture
def host(tmp_path: Path) -> Host:
    folder = tmp_path / "host"
    folder.mkdir()
    return Host(folder)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=300)
@given(st.data())
def test_any_live_section_is_read_or_refused(data: st.DataObject) -> None:
    names = "mig nvml pci journal backoff_s layout_every numa_disks metrics admission tenants".split()
    fields = data.draw(st.dictionaries(st.sampled_from(names) | st.text(max_size=5), JSON, max_size=4))
    keys = st.sampled_from(["latency", "cgroup", "disks", "drain"]) | st.text(max_size=3)
    tenant = data.draw(st.dictionaries(keys, JSON, max_size=3))
    tenants = {"T1": {"latency": {"file": "/x"}}, "T2": tenant}
    document = {
        "format": "gpusched.control", "version": 1, "live": {"journal": "/j", "tenants": tenants, **fields},
        "host": {"roots": [{}], "gpus": [{}], "tenants": [
            {"name": "T1", "protected": True, "start": {"profile": "2g"}}, {"name": "T2"}]},
    }  # fmt: skip
    try:
        _, live = read_live(document)
    except gs.InvalidInput as error:
        assert error.problems and all("/live" in one or "configuration" in one for one in error.problems)
        return
    assert set(live.tenants) == {"T1", "T2"} and live.journal
    for name, value in fields.items():
        if name not in ("admission", "tenants") and not name.startswith("x-"):
            assert getattr(live, name) == value


# ---- journals ----


def entry(**more: Any) -> TenantEntry:
    return TenantEntry(now=Configuration(0, "2g", 0), **more)


def test_a_journal_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with Journal(path, read_only=True) as none:
        assert not none.found and none.tenants == {} and not path.exists()
    with Journal(path) as journal:
        journal.believe("b1")
        pending = Configuration(1, "3g", 4, 75, "0-3")
        journal.tenants["T1"] = entry(pending=pending, switched=True, cpuset="0-7")
        journal.leases.append(Lease("T2", "/x/io.max", "259:0 rbps=max"))
        journal.remember({"T1": {"structural_windows": 3}}, 12.5)
        expected = (dict(journal.tenants), list(journal.leases), journal.carryover)
        with Journal(path, read_only=True) as other:  # beside the writer
            assert (other.tenants, other.leases, other.carryover) == expected
            assert other.boot == "b1" and other.found
            with pytest.raises(Failure, match="no_permission"):
                other.tenants.clear()
                other.save()
    with sqlite3.connect(path) as database:
        assert database.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    folder = sorted(name for name in os.listdir(tmp_path))
    with Journal(path, read_only=True) as journal:
        assert (journal.tenants, journal.leases, journal.carryover) == expected and journal.age_s(20.0) == 7.5
        assert journal.age_s(1.0) == 0.0
    assert sorted(os.listdir(tmp_path)) == folder  # a reader leaves nothing


def test_a_full_disk_leaves_the_journal_as_it_was(tmp_path: Path) -> None:
    with Journal(tmp_path / "journal") as journal:
        journal.tenants["T1"] = entry()
        journal.save()
        journal._database.execute("PRAGMA max_page_count = 1")  # type: ignore[union-attr]
        journal.leases += [Lease("T2", "/x/io.max", "y" * 5000)] * 10
        assert attempt(journal.save) == "insufficient_resources"
    with Journal(tmp_path / "journal", read_only=True) as journal:
        assert journal.leases == [] and journal.tenants == {"T1": entry()}


def refused(path: Path, kind: str) -> None:
    """Makes a journal that is refused."""
    if kind in ("former", "program"):
        path.write_bytes(b'{"format": "gpusched.control-journal"}' if kind == "former" else b"\x7fELF")
        return
    if kind != "foreign":
        with Journal(path) as journal:
            journal.tenants["T1"] = entry()
            journal.save()
    statement = {
        "foreign": "CREATE TABLE x (y)",
        "newer": "PRAGMA user_version = 9",
        "damaged": "UPDATE journal SET value = '{\"tenants\": 3}'",
    }
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute(statement.get(kind, ""))
        database.commit()
    if kind == "torn":
        path.write_bytes(path.read_bytes()[:3000])


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("former", "former C\\+\\+ controller"),
        ("program", "is no journal of gpusched"),
        ("foreign", "database of another program"),
        ("newer", "has version 9; this gpusched reads version 1"),
        ("damaged", "cannot be read"),
        ("torn", "cannot be read|is damaged"),
    ],
)
@pytest.mark.parametrize("read_only", [False, True])
def test_journals_that_are_refused(tmp_path: Path, kind: str, words: str, read_only: bool) -> None:
    refused(tmp_path / "journal", kind)
    before = (tmp_path / "journal").read_bytes()
    with pytest.raises(gs.BackendError, match=words) as caught:
        Journal(tmp_path / "journal", read_only=read_only)
    assert "\n" not in str(caught.value) and (tmp_path / "journal").read_bytes() == before


def test_a_journal_that_does_not_fit_the_host(tmp_path: Path) -> None:
    with Journal(tmp_path / "journal") as journal:
        journal.tenants["T9"] = entry()
        journal.tenants["T1"] = TenantEntry(now=Configuration(7, "2g", 0), pending=Configuration(0, "9g", 0))
        with pytest.raises(gs.BackendError, match="'T9'.*GPU 7 2g at 0.*GPU 0 9g at 0"):
            journal.check(["T1"], ["A100-40GB"])


# ---- outputs ----


@pytest.fixture
def running(host: Host, monkeypatch: pytest.MonkeyPatch) -> Iterator[gs.host.Controller]:
    host.borrow_programs(monkeypatch)
    config = host.config()
    config["live"]["metrics"] = "127.0.0.1:0"
    with gs.host.Controller(config) as controller:
        controller.start()
        yield controller


def test_metrics_for_prometheus(host: Host, running: gs.host.Controller) -> None:
    running.step()
    append(host.folder / "t1.log", "5\n" * 40)
    running.step()
    port = running._metrics.port  # type: ignore[union-attr]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as response:
        text = response.read().decode()
    for line in (
        "gpusched_windows_total 2.0",
        'gpusched_latency_ms{quantile="p99",tenant="T1"} 5.0',
        'gpusched_phase{phase="observe",tenant="T1"} 1.0',
        'gpusched_instance{gpu="0",profile="2g",slice="0",tenant="T1"} 1.0',
        'gpusched_missing_windows_total{tenant="T1"} 1.0',
        "gpusched_observation_seconds_count 2.0",
        "gpusched_leases 0.0",
    ):
        assert line in text.splitlines(), line


def test_the_status_of_a_controller(
    host: Host, running: gs.host.Controller, capsys: pytest.CaptureFixture[str]
) -> None:
    append(host.folder / "t1.log", "5\n" * 40)
    running.step()
    status = running.status()
    assert status["running"] and status["windows"] == 1 and status["tenants"]["T1"]["phase"] == "observe"
    host.write("config.json", json.dumps(host.config()))
    assert cli.main(["control", "status", "--config", str(host.folder / "config.json")]) == 0
    out = capsys.readouterr().out
    assert re.match(r"running\n1 window, the last one \d+ s ago\nT1: observe, p99 ", out)
    assert "GPU 0 2g at 0" in out


def test_systemd_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _service.notify(READY="1")  # without systemd nothing happens
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        _service.notify(READY="1", STATUS="controlling")
        assert systemd.recv(100) == b"READY=1\nSTATUS=controlling"


def test_structured_logs(running: gs.host.Controller, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "gpusched.host")
    running.resume()
    record = json.loads(_service.JsonFormatter().format(caplog.records[-1]))
    assert (record["event"], record["level"]) == ("resume", "info")
    assert record["text"].startswith("resume not needed")


def test_a_start_that_failed_may_be_tried_again(host: Host, tmp_path: Path) -> None:
    world = World(tmp_path)
    world.nvml.lost = True
    config = host.config()
    config["live"].update(mig="nvml", nvml=True)
    with world.instrumented():
        controller = gs.host.Controller(config)
        with pytest.raises(gs.host.UnknownState, match="'T1': failed .gpu_is_lost."):
            controller.start()
        world.nvml.lost = False
        assert "NVML: 2 GPUs" in controller.start()
        threading.Thread(target=controller.step).run()
        assert controller.status()["windows"] == 1
        controller.close()
        assert not controller.status()["running"]


def test_calls_before_the_start(host: Host) -> None:
    controller = gs.host.Controller(json.dumps(host.config()))
    with pytest.raises(gs.InvalidInput, match="start: not called yet"):
        controller.release()
    assert controller.status() == {"running": False, "instances": {}, "changes_cut_off": {}, "limits": []}
    assert repr(controller) == "<gpusched.host.Controller: 2 tenants, 0 windows>"
    with pytest.raises(gs.InvalidInput, match="no JSON"):
        gs.host.Controller("{")
