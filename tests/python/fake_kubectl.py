# SPDX-License-Identifier: Apache-2.0
"""kubectl as far as the script of a plan calls it, on a cluster in a JSON file: `python fake_kubectl.py
STATE.json ARGUMENT...`.

The cluster: `pods` by namespace/name with `uid`, `node`, `owner`, `kind`, `ready`; `cordoned`, `evicted`
(uids); `busy`: answers 429 to
so many further evictions, `down`: refuses so many further calls; `lands`: nodes of replacements, in order;
`slow`: looks until a
replacement is ready; `owners`: what controllers say of themselves when asked, with null for those that are
gone; `wants`: how many pods
controllers want, where not as many as they had; `gone`: nodes that were removed; `forbidden`: pods whose
budget allows no
eviction; `kill`: the process group dies at that call, `before` or `after` it takes effect; `log`: the calls.
"""

import json
import os
import signal
import sys


def main() -> int:
    path, arguments = sys.argv[1], sys.argv[2:]
    with open(path) as file:
        state = json.load(file)
    state["log"].append(" ".join(arguments[:4]))
    dies = state.get("kill") and len(state["log"]) == state["kill"]["call"] and state["kill"]["when"]
    if dies != "before":
        code, out, err = act(state, arguments)
    with open(path, "w") as file:
        json.dump(state, file)
    if dies:
        os.killpg(os.getpgid(0), signal.SIGKILL)
    sys.stdout.write(out)
    sys.stderr.write(err)
    return code


def act(state: dict, arguments: list[str]) -> tuple[int, str, str]:
    if state.get("down", 0) > 0:
        state["down"] -= 1
        return (
            1,
            "",
            "The connection to the server 127.0.0.1:6443 was refused - did you specify the right host or "
            "port? connection refused\n",
        )
    space = ""
    if arguments[0] == "-n":
        space, arguments = arguments[1], arguments[2:]
    verb, *rest = arguments
    if verb == "config":
        return 0, "prod\n", ""
    if verb == "cordon":
        state["cordoned"] = sorted({*state["cordoned"], rest[0]})
        return 0, f"node/{rest[0]} cordoned\n", ""
    if verb == "uncordon" and rest[0] in state.get("gone", ()):
        return 1, "", f'Error from server (NotFound): nodes "{rest[0]}" not found\n'
    if verb == "uncordon":
        if rest[0] in state["cordoned"]:  # kubectl says "already uncordoned" otherwise
            state["cordoned"].remove(rest[0])
        return 0, f"node/{rest[0]} uncordoned\n", ""
    if verb == "create":
        return evict(state, json.load(sys.stdin))
    if rest[0] == "node":
        return 0, "true" if rest[1] in state["cordoned"] else "", ""
    if rest[0] == "pods":
        return 0, listed(state, space), ""
    if "/" in rest[0]:
        return controller(state, space, rest[0])
    pod = state["pods"].get(f"{space}/{rest[1]}")
    if pod is None:
        return 1, "", f'Error from server (NotFound): pods "{rest[1]}" not found\n'
    if ".metadata.ownerReferences" not in rest[-1]:
        return 0, f"{pod['node']}|{pod['uid']}" if ".metadata.uid" in rest[-1] else pod["node"], ""
    owner = pod["owner"]
    return (
        0,
        f"{pod['uid']}|{pod['node']}|{owner and 'uid-' + owner}|{(pod.get('kind') or 'ReplicaSet') if owner else ''}/{owner}",
        "",
    )


def controller(state: dict, space: str, name: str) -> tuple[int, str, str]:
    owner = name.split("/")[1]
    said = state.get("owners", {}).get(owner, f"uid-{owner}|{state.get('wants', {}).get(owner, 9)}|||||")
    if said is None:
        return 1, "", f'Error from server (NotFound): replicasets.apps "{owner}" not found\n'
    return (1, "", said + "\n") if said.startswith("Error") else (0, said, "")


def listed(state: dict, space: str) -> str:
    lines = []
    for name, pod in state["pods"].items():
        if not name.startswith(space + "/"):
            continue
        if not pod["ready"]:
            pod["looks"] = pod.get("looks", 0) + 1
            pod["ready"] = pod["looks"] > state.get("slow", 0) and pod["node"] != ""
        lines.append(f"uid-{pod['owner']}||{pod['uid']}|{name.split('/')[1]}|{pod['node']}|{pod['ready']}\n")
    return "".join(lines)


def evict(state: dict, eviction: dict) -> tuple[int, str, str]:
    name = f"{eviction['metadata']['namespace']}/{eviction['metadata']['name']}"
    dry = eviction["deleteOptions"].get("dryRun") == ["All"]
    if dry:
        state["log"][-1] = f"dry run of {name}"
    if name in state.get("forbidden", ()):
        return (
            1,
            "",
            "Error from server (TooManyRequests): Cannot evict pod as it would violate the pod's "
            "disruption budget.\n",
        )
    if dry:
        return 0, '{"kind":"Status","status":"Success"}\n', ""
    if state.get("busy", 0) > 0:
        state["busy"] -= 1
        return (
            1,
            "",
            "Error from server (TooManyRequests): Cannot evict pod as it would violate the pod's "
            "disruption budget.\n",
        )
    if state.get("refusal"):
        return 1, "", state["refusal"] + "\n"
    pod = state["pods"].get(name)
    if pod is None:
        return 1, "", f'Error from server (NotFound): pods "{name}" not found\n'
    if pod["uid"] != eviction["deleteOptions"]["preconditions"]["uid"]:
        return (
            1,
            "",
            "Error from server (Conflict): the UID in the precondition does not match the UID in record.\n",
        )
    del state["pods"][name]
    state["evicted"].append(pod["uid"])
    left = sum(other["owner"] == pod["owner"] for other in state["pods"].values())
    if pod["owner"] and left < state.get("wants", {}).get(pod["owner"], 9):
        number = len(state["evicted"])
        node = state["lands"].pop(0) if state["lands"] else ""
        again = name if pod.get("keeps_name") else f"{name}-{number}"
        state["pods"][again] = {**pod, "uid": f"new-{number}", "node": node, "ready": False, "looks": 0}
    return 0, '{"kind":"Status","status":"Success"}\n', ""


sys.exit(main())
