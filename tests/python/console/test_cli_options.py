# SPDX-License-Identifier: Apache-2.0
"""Every option of the console script that is a keyword of a function of the library reaches that function."""

from types import SimpleNamespace

import gpusched as gs
import pytest
from clusters import make_task, tiny_document
from gpusched import cli
from gpusched._commands import serving
from gpusched._commands.arguments import choices, goal, level, names, rate

COMMANDS = cli.parser().commands
OF_LIBRARY = {(command, function) for command, parser in COMMANDS.items() for function in parser.fields}

# How the command comes to call the function, and the function that it calls where that is another one.
CALLS = [
    ("generate", "sim.generate_cluster", "-o OUT", None),
    ("import", "io.read_kubernetes", "kubernetes CLUSTER -o OUT", None),
    ("import", "io.read_kubernetes", "kai CLUSTER -o OUT", "io.read_kai_snapshot"),
    ("import", "io.read_slurm", "slurm CLUSTER -o OUT", None),
    ("kube snapshot", "io.read_kubernetes", "-o OUT", None),
    ("report", "fragmentation.report", "CLUSTER", None),
    ("report", "fragmentation.switch_slots", "CLUSTER", None),
    ("report", "fragmentation.unusable_nodes", "CLUSTER --nodes 1", None),
    ("replay", "sim.replay", "NODES PODS", None),
    ("consolidate", "consolidation.consolidate", "CLUSTER", None),
    ("frontier", "consolidation.frontier", "CLUSTER", None),
    ("blockers", "consolidation.blockers", "CLUSTER", None),
    ("drain-order", "consolidation.drain_order", "CLUSTER", None),
    ("what-if", "consolidation.what_if", "CLUSTER", None),
    ("preempt", "preemption.preempt", "CLUSTER t", None),
    ("preempt", "preemption.preempt", "CLUSTER t u", "preemption.preempt_gang"),
    ("preempt", "preemption.preempt_gang", "CLUSTER t u", None),
    ("allocate", "allocation.allocate", "CLUSTER j", None),
    ("allocate", "allocation.allocate_many", "CLUSTER j k", None),
    ("admit", "admission.admit", "CLUSTER j", None),
    ("why", "admission.why", "CLUSTER j", None),
    ("plan-serving", "serving.plan_serving", "REQUEST", None),
    ("serving-curve", "serving.curve", "REQUEST", None),
    ("plan-serving", "serving.replan", "REQUEST --replan-from PLAN", None),
    ("plan-serving", "serving.sweep_budgets", "REQUEST --budgets 1,2", None),
    ("verify", "verify.plan", "CLUSTER PLAN", None),
    ("explain", "consolidation.consolidate", "CLUSTER PLAN n", "consolidation.explain"),
    ("explain-move", "consolidation.explain_move", "CLUSTER t n", None),
    ("simulate-host", "sim.simulate_host", "--seeds 1", None),
]


class Reached(Exception):
    pass


def value_of(action):
    if action.choices:
        return str(next(iter(action.choices)))
    numbers = {int: "64", float: "1", rate: "1"}
    words = {None: "a", names: "a", level: "node", choices: "node_order=fewest_pods", goal: "empty_nodes=1"}
    return {**numbers, **words}[action.type]


def test_all_functions_with_options_are_looked_at():
    assert {(command, function) for command, function, _, _ in CALLS} == OF_LIBRARY


@pytest.mark.parametrize(("command", "function", "words", "called"), CALLS)
def test_every_option_reaches_the_library(command, function, words, called, tmp_path, monkeypatch):
    files = {name: str(tmp_path / name) for name in ("OUT", "CLUSTER", "PLAN")}
    cluster = tiny_document()
    cluster["tasks"] += [make_task(name, job=name, gpu_count=1) for name in "jk"]
    gs.Cluster.from_json(cluster).to_json(files["CLUSTER"])
    monkeypatch.setattr(gs.Plan, "from_json", staticmethod(lambda path: None))
    monkeypatch.setattr(gs.io, "read_openb", lambda *files: None)
    monkeypatch.setattr(serving, "read_request", lambda path, rate=None: {})
    monkeypatch.setattr(serving, "read_plan", lambda path: {})
    seen = {}

    def spy(*_, **keywords):
        seen.update(keywords)
        raise Reached

    module, name = (called or function).split(".")
    monkeypatch.setattr(getattr(gs, module), name, spy)
    monkeypatch.setattr(gs.kubernetes, "snapshot", lambda: SimpleNamespace(objects={}, to_dict=dict))
    arguments = [*command.split(), *(files.get(word, word) for word in words.split())]
    fields = COMMANDS[command].fields[function]
    actions = {action.dest: action for action in COMMANDS[command]._actions}
    for field in fields:
        option = actions[field].option_strings[-1]
        arguments.append(option if actions[field].nargs == 0 else f"{option}={value_of(actions[field])}")
    with pytest.raises(Reached):
        cli.main(arguments)
    assert fields and set(fields) <= set(seen)
