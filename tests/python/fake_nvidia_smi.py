# SPDX-License-Identifier: Apache-2.0
"""`nvidia-smi mig` for tests: GPU instances in a file (FAKE_SMI_STATE), as they outlive whoever asks for
them.

State: {"gpus": [[{"profile", "id", "start", "size", "compute", "mine", "client"}]], "next": 1, "forbidden":
False, "delay_s": 0, "pci": [], "intrude": False, "used_mib": 1000}: addresses of the GPUs, whether another
program is quicker than the next creation, and the memory that each instance uses (None: N/A). Each part of a
command (GPU instance, compute instance) is written on its own. Other writers of the file hold its lock
(FAKE_SMI_STATE + ".lock") too. The file is in marshal's format, since importing json would take half of each
call.
"""

from __future__ import annotations

import fcntl
import marshal
import os
import sys
import time

SIZES = {19: 1, 20: 1, 15: 2, 14: 2, 9: 4, 5: 4, 0: 8}
SMS = {19: 14, 20: 14, 15: 14, 14: 28, 9: 42, 5: 56, 0: 98}
MIB = {1: 4864, 2: 9856, 4: 19968, 8: 40192}


def load(path: str) -> dict:
    with open(path, "rb") as file:
        return marshal.load(file)


def save(path: str, state: dict) -> None:
    with open(path + ".new", "wb") as file:
        marshal.dump(state, file)
    os.replace(path + ".new", path)


def fail(code: int, text: str) -> int:
    print(text)
    return code


def main(arguments: list[str]) -> int:
    path = os.environ["FAKE_SMI_STATE"]
    with open(path + ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return command(path, load(path), arguments)


def mig_devices(gpu: list[dict], used: int | None) -> str:
    out = "<mig_devices>"
    for i in gpu:
        total = MIB[i["size"]]
        memory = (
            f"<total>{total} MiB</total><free>{total - used} MiB</free>"
            if used is not None
            else "<total>N/A</total>"
        )
        if i["compute"]:
            out += f"<mig_device><gpu_instance_id>{i['id']}</gpu_instance_id>"
            out += f"<fb_memory_usage>{memory}</fb_memory_usage></mig_device>"
    return out + "</mig_devices>"


def command(path: str, state: dict, a: list[str]) -> int:
    def value(name: str) -> str:
        return a[a.index(name) + 1]

    query = a[:2] == ["-q", "-x"]
    if (a[0] != "mig" and not query) or "-mig" in a or "-r" in a:
        state["forbidden"] = True
        save(path, state)
        return fail(2, "Invalid argument")
    g = state["pci"].index(value("-i")) if state.get("pci") else int(value("-i"))
    gpu = state["gpus"][g]
    if "-lgi" in a:
        if not gpu:
            return fail(6, "No GPU instances found: Not Found")
        for i in gpu:
            print(f"|   {g}  MIG x.xgb   {i['profile']}   {i['id']}    {i['start']}:{i['size']}  |")
        return 0
    if query:
        print(mig_devices(gpu, state.get("used_mib", 1000)))
        return 0
    if "-lgip" in a:
        for profile, size in SIZES.items():
            print(
                f"|   {g}  MIG x.xgb  {profile}   0/1   {MIB[size] / 1024:.2f}   No   {SMS[profile]}   0   "
                "0   |"
            )
        return 0
    time.sleep(state.get("delay_s", 0))
    if "-cgi" in a:
        profile, start = map(int, value("-cgi").split(":"))
        size = SIZES[profile]
        new = {"profile": profile, "id": state["next"], "start": start, "size": size}
        new |= {"compute": False, "mine": True}
        if state.pop("intrude", False):
            gpu.append(new | {"id": 77, "compute": True, "mine": False})
            save(path, state)
        if any(start < i["start"] + i["size"] and i["start"] < start + size for i in gpu):
            return fail(23, "Unable to create a GPU instance: Insufficient Resources")
        state["next"] += 1
        gpu.append(new)
        save(path, state)
        time.sleep(state.get("delay_s", 0))
        new["compute"] = "-C" in a
        save(path, state)
        print(
            f"Successfully created GPU instance ID  {new['id']} on GPU  {g} using profile MIG x.xgb (ID "
            f"{profile})"
        )
        return 0
    found = [i for i in gpu if i["id"] == int(value("-gi"))]
    if not found:
        return fail(6, "Not Found")
    one = found[0]
    before = repr(state)
    state["forbidden"] |= not one["mine"]
    code = 0
    if "-lci" in a:
        code = 0 if one["compute"] else fail(6, "Not Found")
    elif "-dci" in a:
        if one.get("client"):
            code = fail(19, "In use by another client")
        elif not one["compute"]:
            code = fail(6, "Not Found")
        else:
            one["compute"] = False
    elif "-cci" in a:
        one["compute"] = True
    elif "-dgi" in a:
        if one["compute"]:
            code = fail(19, "In use by another client")
        else:
            gpu.remove(one)
    else:
        state["forbidden"] = True
    if repr(state) != before:
        save(path, state)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
