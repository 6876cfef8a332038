# SPDX-License-Identifier: Apache-2.0
"""kubectl as far as the script of a plan calls it, on a cluster in a file: `python fake_kubectl.py STATE
ARGUMENT...`. It prints the lines that the script's templates give, so tests/kubernetes tests these on a real
API server. The file holds a Python literal, because importing json or signal would take half of most calls.

The cluster: `nodes` by name with `gpus`, `unschedulable`, `mark`, `version`; `pods` by namespace/name with
`uid`, `node`, `owner`, `kind`, `ready`, `gpus`, `created`, `odd` (the marks before the labels); `unready`
pods never get ready; `leaving` ones have a time of deletion; `lease`; `clock` counts calls.
Replacements start on the nodes in `lands` ("": on none), then on any open node with room. A pod is ready
after `slow` listings.
What goes wrong: `busy`: so many evictions get 429; `forbidden`: pods whose eviction always does; `refusal`:
the answer to each eviction; `down`: the errors of the next calls, which find no server; `unreachable`: the
error of the first call of a script; `conflicts`: so many patches of nodes find another version; `owners`:
what controllers say when asked, null: they are gone; `wants`: how many pods they want; `broken`: budgets that
are broken, `breaks`: those that the first eviction breaks; `arrives`: pods by the number of the call that
creates them; `uncordons`, `removes`: nodes by the number of the call; `kill`: the process group dies at that
call, `before` or `after` it takes effect. `log`: the calls; `evicted`: uids; `no_room`: those that no open
node had room for.
"""

import fcntl
import os
import sys

SIGKILL = 9


class Failure(Exception):
    """What the API server answers."""

    def __init__(self, reason: str, text: str = "") -> None:
        super().__init__(f"Error from server ({reason}): {text or reason}\n")


def main() -> int:
    path, arguments = sys.argv[1], [one for one in sys.argv[2:] if not one.startswith("--request-timeout")]
    lock = open(path + ".lock", "w")  # noqa: SIM115
    fcntl.flock(lock, fcntl.LOCK_EX)
    with open(path) as file:
        state = eval(file.read())
    if arguments == ["get", "--raw", "/version"]:  # the first call
        sys.stderr.write(state.get("unreachable", ""))
        return 1 if "unreachable" in state else 0
    state["clock"] = state.get("clock", 0) + 1
    space = ""
    if arguments[0] == "-n":
        space, arguments = arguments[1], arguments[2:]
    state["log"].append(" ".join(arguments[:3]))
    dies = state.get("kill") and state["clock"] == state["kill"]["call"] and state["kill"]["when"]
    code, out, err = 0, "", ""
    if dies != "before":
        try:
            out = act(state, space, arguments)
        except Failure as failure:
            code, err = 1, str(failure)
    with open(path + ".new", "w") as file:
        file.write(repr(state))
    os.replace(path + ".new", path)
    if dies:
        os.killpg(os.getpgid(0), SIGKILL)
    sys.stdout.write(out)
    sys.stderr.write(err)
    return code


def parsed(text: str) -> dict:
    import json

    return json.loads(text)


def act(state: dict, space: str, arguments: list[str]) -> str:
    if state.get("down"):
        raise Failure("down", state["down"].pop(0))
    state["pods"].update(state.get("arrives", {}).pop(str(state["clock"]), {}))
    if node := state.get("uncordons", {}).pop(str(state["clock"]), ""):
        state["nodes"][node]["unschedulable"] = False
    state["nodes"].pop(state.get("removes", {}).pop(str(state["clock"]), ""), None)
    verb, *rest = arguments
    if verb == "config":
        return "prod\n"
    if verb == "apply":
        with open(rest[-1]) as file:
            return apply(state, [parsed(one) for one in file.read().split("---") if one])
    if verb == "create":
        body = parsed(sys.stdin.read())
        return evict(state, body) if body["kind"] == "Eviction" else create_lease(state, body)
    if verb == "delete":
        state["lease"] = None
        return ""
    if verb == "patch":
        if rest[0] == "lease":
            with open(rest[-1]) as file:
                return patch_lease(state, parsed(file.read()))
        return release(state, rest[1 : rest.index("--type")], parsed(rest[-1]))
    if rest[0] == "lease":
        return lease_line(state)
    if rest[0] == "nodes":
        return "".join(map(node_line, state["nodes"].items()))
    if rest[0] == "nodes,pods,poddisruptionbudgets":
        schedule(state)
        lines = [*map(node_line, state["nodes"].items()), *map(pod_line, state["pods"].items())]
        lines += [f"D|{name}|broken|1|&app In \n" for name in state.get("broken", ())]
        return "".join(lines) + "".join(
            f"D|{name}-budget||0|&pod In {name}\n" for name in state.get("forbidden", ())
        )
    if rest[0] == "pods" and "pending" in rest[-1]:
        return "".join(
            f"uid-{pod['owner']} pending: {name}: 0/9 nodes are available\n"
            for name, pod in state["pods"].items()
            if not pod["node"]
        )
    if "/" in rest[0]:
        return controller(state, rest[0])
    return find(state["pods"], f"{space}/{rest[1]}", "pods")["node"]


def find(things: dict, name: str, kind: str) -> dict:
    if things.get(name) is None:
        raise Failure("NotFound", f'{kind} "{name}" not found')
    return things[name]


def stamp(clock: int) -> str:
    return f"2026-01-01T{clock // 3600:02}:{clock // 60 % 60:02}:{clock % 60:02}Z"


def create_lease(state: dict, body: dict) -> str:
    if state.get("lease"):
        raise Failure("AlreadyExists", 'leases.coordination.k8s.io "gpusched" already exists')
    plan = body["metadata"]["annotations"]["gpusched/plan"]
    holder = body["spec"]["holderIdentity"]
    state["lease"] = {
        "version": 1, "holder": holder, "plan": plan, "created": stamp(state["clock"]), "before": "",
    }  # fmt: skip
    return lease_line(state)


def patch_lease(state: dict, change: dict) -> str:
    lease = find(state, "lease", "leases")
    if change["metadata"]["resourceVersion"] != str(lease["version"]):
        raise Failure("Conflict", "the object has been modified")
    lease["version"] += 1
    lease["holder"] = change["spec"]["holderIdentity"]
    lease["before"] = change["metadata"].get("annotations", {}).get("gpusched/before", lease["before"])
    return lease_line(state)


def lease_line(state: dict) -> str:
    lease = find(state, "lease", "leases")
    return "|".join(str(lease[key]) for key in ("version", "holder", "plan", "created", "before"))


def apply(state: dict, items: list[dict]) -> str:
    """Like kubectl, it goes on after an error."""
    state["log"][-1] = "cordon " + " ".join(item["metadata"]["name"] for item in items)
    failed = ""
    for item in items:
        meta, node = item["metadata"], state["nodes"].get(item["metadata"]["name"])
        if node is None or state.get("conflicts", 0) > 0 or meta["resourceVersion"] != str(node["version"]):
            state["conflicts"] = max(state.get("conflicts", 0) - 1, 0)
            failed = "uid mismatch" if node is None else "the object has been modified"
            continue
        node |= {
            "mark": meta["annotations"]["gpusched/plan"],
            "unschedulable": True,
            "version": node["version"] + 1,
        }
    if failed:
        raise Failure("error", f"{failed}\nPlease review the fields above")
    return "serverside-applied\n"


def release(state: dict, names: list[str], change: dict) -> str:
    for name in names:
        node = find(state["nodes"], name, "nodes")
        node["mark"] = change["metadata"]["annotations"]["gpusched/plan"] or ""
        node["unschedulable"] = bool(change.get("spec", node)["unschedulable"])
        node["version"] += 1
    return "patched\n"


def node_line(item: tuple[str, dict]) -> str:
    name, node = item
    closed = "true" if node["unschedulable"] else "<no value>"
    return (
        f"N|{name}|{closed}|True|pods=110,gpu/x={node['gpus']},|name={name},||"
        f"{node['mark']}|u-{name}|{node['version']}\n"
    )


def pod_line(item: tuple[str, dict]) -> str:
    name, pod = item
    owner = f"{pod.get('kind', 'ReplicaSet')}/{pod['owner']}/uid-{pod['owner']}" if pod["owner"] else ""
    return (
        f"P|{name}|{pod['uid']}|{pod['node'] or '<no value>'}|Running|{pod.get('leaving', '<no value>')}|"
        f"{pod.get('created', '')}|{owner}|{pod['ready']}| +gpu/x={pod['gpus']}, ^ %||||||"
        f"{pod.get('odd', '')}|"
        f"app={pod['owner']},pod={name},|\n"
    )


def controller(state: dict, name: str) -> str:
    owner = name.split("/")[1]
    said = state.get("owners", {}).get(owner, f"uid-{owner}|{state.get('wants', {}).get(owner, 9)}|||||")
    if said is None:
        raise Failure("NotFound")
    if said.startswith("Forbidden"):
        raise Failure("Forbidden", said)
    return said


def free(state: dict, node: str) -> int:
    return state["nodes"][node]["gpus"] - sum(p["gpus"] for p in state["pods"].values() if p["node"] == node)


def schedule(state: dict) -> None:
    for pod in state["pods"].values():
        if pod["ready"]:
            continue
        if not pod["node"] and not pod.get("stuck"):
            for name, node in state["nodes"].items():
                if not node["unschedulable"] and free(state, name) >= pod["gpus"]:
                    pod["node"] = name
                    break
        pod["looks"] = pod.get("looks", 0) + 1
        pod["ready"] = not pod.get("unready") and pod["looks"] > state.get("slow", 0) and pod["node"] != ""


def evict(state: dict, eviction: dict) -> str:
    name = f"{eviction['metadata']['namespace']}/{eviction['metadata']['name']}"
    budget = "Cannot evict pod as it would violate the pod's disruption budget."
    if name in state.get("forbidden", ()):
        raise Failure("TooManyRequests", budget)
    if state.get("busy", 0) > 0:
        state["busy"] -= 1
        raise Failure("TooManyRequests", budget)
    if state.get("refusal"):
        raise Failure("InternalError", state["refusal"])
    pod = find(state["pods"], name, "pods")
    if pod["uid"] != eviction["deleteOptions"]["preconditions"]["uid"]:
        raise Failure("Conflict", "the UID in the precondition does not match the UID in record.")
    del state["pods"][name]
    open_nodes = [node for node, one in state["nodes"].items() if not one["unschedulable"]]
    if all(free(state, node) < pod["gpus"] for node in open_nodes):
        state["no_room"] = [*state.get("no_room", ()), pod["uid"]]
    state["evicted"].append(pod["uid"])
    state["broken"] = [*state.get("broken", ()), *state.pop("breaks", ())]
    left = sum(other["owner"] == pod["owner"] for other in state["pods"].values())
    if pod["owner"] and left < state.get("wants", {}).get(pod["owner"], 9):
        number = len(state["evicted"])
        node = state["lands"].pop(0) if state["lands"] else None
        again = name if pod.get("keeps_name") else f"{name}-{number}"
        state["pods"][again] = {
            **pod, "uid": f"new-{number}", "node": node or "", "ready": False, "looks": 0,
            "created": stamp(state["clock"]), "stuck": node == "",
        }  # fmt: skip
    return "{}\n"


sys.exit(main())
