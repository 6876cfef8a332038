# SPDX-License-Identifier: Apache-2.0
"""scontrol and squeue as far as the script of a plan calls them, on a cluster in a file: `python
fake_scontrol.py STATE scontrol|squeue ARGUMENT...`. Records have the layout that scontrol prints. The file
holds a Python literal, because importing json or signal would take half of each call.

The cluster: `nodes` by name with `cpus` (jobs that fit), `state`, `reason`; `jobs` by id with `state`,
`nodes`, `priority`, `requeue`, `comment`; `clock` counts calls. A requeued job is COMPLETING for one call,
then PENDING; a pending job that is not held starts on the first nodes with room that are not drained.
What goes wrong: `stuck`: jobs that do not start; `removed`: nodes that are gone; `fails`: by the start of a
call what it answers instead; `ends`: by job the state it takes instead of PENDING, such as gone; `changes`:
by the number of a call new fields of jobs; `kill`: the process group dies at that call; `log`: the calls.
"""

import os
import sys

SIGKILL = 9


def main() -> int:
    path, program, *arguments = sys.argv[1:]
    with open(path) as file:
        state = eval(file.read())
    state["clock"] = state.get("clock", 0) + 1
    state["log"].append(" ".join(arguments))
    for name, fields in state.get("changes", {}).get(state["clock"], {}).items():
        state["jobs"][name] |= fields
    schedule(state)
    called = " ".join([program, *arguments])
    error = next((text for start, text in state.get("fails", {}).items() if called.startswith(start)), "")
    if (
        program == "scontrol"
        and arguments[:2] == ["show", "node"]
        and arguments[2] in state.get("removed", ())
    ):
        error = f"Node {arguments[2]} not found"
    out = None if error else queue(state, arguments[2]) if program == "squeue" else control(state, *arguments)
    with open(path, "w") as file:
        file.write(repr(state))
    if state["clock"] == state.get("kill"):
        os.killpg(os.getpgid(0), SIGKILL)
    if out is None:
        sys.stderr.write(f"{error or 'slurm_load_jobs error: Invalid job id specified'}\n")
        return 1
    sys.stdout.write(out)
    return 0


def queue(state: dict, node: str) -> str:
    return "".join(f"{name}\n" for name, job in state["jobs"].items() if node in job["nodes"])


def control(state: dict, verb: str, *rest: str) -> str | None:
    if verb == "update":
        fields = dict(one.split("=", 1) for one in rest)
        if "JobId" in fields:
            state["jobs"][fields["JobId"]]["comment"] = fields["AdminComment"]
        else:
            node = state["nodes"][fields["NodeName"]]
            node["state"] = "IDLE+DRAIN" if fields["State"] == "DRAIN" else "IDLE"
            node["reason"] = fields.get("Reason", "")
        return ""
    if verb in ("requeuehold", "release"):
        job = state["jobs"][rest[0]]
        job["priority"] = 0 if verb == "requeuehold" else 100
        if verb == "requeuehold":
            job |= {"state": "COMPLETING", "nodes": []}
            state["requeued"].append(rest[0])
        return ""
    if rest[0] == "hostnames":
        return "".join(f"{name}\n" for name in rest[1].split(","))
    if rest[0] == "node":
        node = state["nodes"][rest[1]]
        reason = f"   Reason={node['reason']} [root@2026-11-28T09:00:00]\n" if node["reason"] else ""
        return (
            f"NodeName={rest[1]} Arch=x86_64 CoresPerSocket=48 \n   State={node['state']} Weight=1\n{reason}"
        )
    job = state["jobs"].get(rest[1])
    if job is None or job["state"] == "gone":
        return None
    why = "None" if job["state"] == "RUNNING" else "JobHeldUser" if job["priority"] == 0 else "Resources"
    comment = f"   AdminComment={job['comment']} \n" if job.get("comment") else ""
    return (
        f"JobId={rest[1]} JobName=JobState=FAILED Requeue=0\n   Priority={job['priority']} Nice=0\n"
        f"   JobState={job['state']} Reason={why} Dependency=(null)\n"
        f"   Requeue={job['requeue']} Restarts=0 BatchFlag=1\n   ReqNodeList=(null) ExcNodeList=(null)\n"
        f"   NodeList={','.join(job['nodes']) or '(null)'}\n{comment}   Command=/home/u/run.sh NodeList=x\n"
    )


def schedule(state: dict) -> None:
    for name, job in state["jobs"].items():
        if job["state"] == "COMPLETING":
            job["state"] = state.get("ends", {}).get(name, "PENDING")
        elif job["state"] == "PENDING" and job["priority"] > 0 and name not in state.get("stuck", ()):
            room = [
                node
                for node, one in state["nodes"].items()
                if "DRAIN" not in one["state"] and node not in state.get("removed", ())
                and sum(node in other["nodes"] for other in state["jobs"].values()) < one["cpus"]
            ]
            if len(room) >= job["count"]:
                job |= {"state": "RUNNING", "nodes": room[: job["count"]]}


sys.exit(main())
