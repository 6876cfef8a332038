# SPDX-License-Identifier: Apache-2.0
"""The console script's manners: help and defaults, no abbreviations, nearest names, completion, singular and
plural.
"""

import argparse
import contextlib
import inspect
import shutil
import subprocess

import gpusched as gs
import pytest
from clusters import document, make_node, make_task
from gpusched import cli
from messages import mentions

TOP = cli.parser()
COMMANDS = TOP.commands


def told(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        cli.main(list(arguments))
    assert ended.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_help_names_every_option_and_its_default(command, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main([*command.split(), "--help"])
    out = capsys.readouterr().out
    assert not ended.value.code and out.startswith(f"usage: gpusched {command}")
    for action in COMMANDS[command]._actions:
        assert action.help and all(option in out for option in action.option_strings), action
        optional = action.option_strings and action.dest != "help" and not action.required
        assert not optional or "default: " in action.help, action


@pytest.mark.parametrize(
    ("command", "function"),
    [
        ("generate", gs.sim.generate_cluster),
        ("consolidate", gs.consolidate),
        ("replay", gs.sim.replay),
        ("preempt", gs.preempt),
        ("admit", gs.admit),
        ("plan-serving", gs.serving.plan_serving),
    ],
)
def test_defaults_are_the_library_s(command, function):
    parameters = inspect.signature(function).parameters
    shown = 0
    for action in COMMANDS[command]._actions:
        if action.dest not in parameters or action.nargs == 0 or not action.option_strings:
            continue
        default = parameters[action.dest].default
        if default not in (None, [], inspect.Parameter.empty):
            assert f"(default: {default})" in action.help, (command, action.dest)
            shown += 1
    assert shown >= 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["consolidate", "{}", "--clear", ","], "argument --clear: ',' has no names"),
        (["generate", "open", "-o", "{}.json"], "gpusched: preset: 'open'; did you mean 'openb'?"),
        (["kube", "snapshot", "-o", "{}.json", "--page-size", "0"], "--page-size: 0; 1 to 10000"),
        (["simulate-host", "--seeds", "-3"], "gpusched: --seeds: -3; expected at least 1"),
        (["simulate-host", "--scenario", "table4"], "argument --scenario: did you mean 'table3'?"),
    ],
)
def test_mistakes_name_the_option(arguments, told, cluster_file, capsys):
    try:
        assert cli.main([word.format(cluster_file) for word in arguments]) == 2
    except SystemExit as ended:
        assert ended.code == 2
    assert mentions(capsys.readouterr().err, told)


def test_options_are_not_abbreviated(capsys):
    assert all(not parser.allow_abbrev for parser in [TOP, *COMMANDS.values()])
    error = told(capsys, "consolidate", "x.json", "--max-move", "3")
    assert mentions(error, "unrecognized arguments: --max-move 3; did you mean '--max-moves'")
    assert "unrecognized arguments: --vers" in told(capsys, "report", "x.json", "--vers")


def test_unknown_commands_and_names_get_the_nearest_ones(capsys):
    for line, words in (
        ("consolidat x.json", "invalid choice: 'consolidat' did you mean 'consolidate'?"),
        ("kube snapshots -o x.json", "invalid choice: 'snapshots' did you mean 'snapshot'?"),
        ("kube", "required: COMMAND (see gpusched kube --help)"),
        ("kube snapshot -o x.json --incluster", "--incluster; did you mean '--in-cluster'?"),
        ("consolidate x.json --preset bets", "--preset: 'bets' did you mean 'best'?"),
    ):
        assert mentions(told(capsys, *line.split()), words)


@pytest.fixture(scope="module")
def completion(tmp_path_factory):
    """The scripts of completion by shell."""
    pytest.importorskip("shtab")
    scripts = {shell: tmp_path_factory.mktemp("completion") / shell for shell in ("bash", "zsh")}
    for shell, script in scripts.items():
        with script.open("w") as file, contextlib.redirect_stdout(file):
            assert cli.main(["completion", shell]) == 0
    return scripts


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion_scripts(shell, completion):
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    subprocess.run([shell, "-n", str(completion[shell])], check=True)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["gpusched", "conso"], ["consolidate"]),
        (["gpusched", "consolidate", "--max-moves-p"], ["--max-moves-per-node", "--max-moves-per-wave"]),
        (["gpusched", "consolidate", "--preset", ""], ["best", "fast", "ipc"]),
        (["gpusched", "report", "clus"], ["cluster.json"]),
        (["gpusched", "allocate", "cluster.json", "clus"], ["cluster.json"]),
        (["gpusched", "simulate-host", "--scenario", "n"], ["neighbours", "no_counters", "noisy_counters"]),
        (["gpusched", "kube", ""], ["rbac", "snapshot"]),
        (["gpusched", "generate", ""], ["asi", "constrained", "flextopo-4090", "openb"]),
    ],
)
def test_bash_completes(words, expected, tmp_path, completion):
    (tmp_path / "cluster.json").write_text("")
    quoted = " ".join(f"'{word}'" for word in words)
    line = (
        f"source {completion['bash']}; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; "
        'COMP_LINE="${COMP_WORDS[*]}"; COMP_POINT=${#COMP_LINE}; '
        '_shtab_gpusched; printf \'%s\\n\' "${COMPREPLY[@]}"'
    )
    run = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert sorted(word.strip() for word in run.stdout.split()) == expected, run.stderr


def test_one_is_not_several(tmp_path, capsys):
    path = str(tmp_path / "cluster.json")
    nodes = [make_node("a", gpu_count=1)]
    gs.Cluster.from_json(document(nodes, [make_task("t", node="a", gpus=[0])])).to_json(path)
    assert cli.main(["report", path, "--shapes", "1x8", "--job-gpus", "1"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("1 node, 1 GPU, 1 task (0 pending, 0 locked)\n") and "No job of 1 GPU could" in out
    assert cli.main(["consolidate", path]) == 0
    assert mentions(capsys.readouterr().out, "0 nodes with 0 GPUs vacated by 0 moves in 0 waves")


def test_reports_show_failed_gpus_and_cordoned_nodes(tmp_path, capsys):
    path = str(tmp_path / "cluster.json")
    nodes = [make_node("a", failed_gpus=[0, 1]), make_node("b", schedulable=False)]
    gs.Cluster.from_json(document(nodes, [])).to_json(path)
    assert cli.main(["report", path, "--shapes", "1x8"]) == 0
    assert "(0 pending, 0 locked), 2 failed GPUs, 1 cordoned node\n" in capsys.readouterr().out


def test_help_that_cannot_be_written_is_an_error_without_a_buffer_too(monkeypatch):
    class Full:
        def write(self, text):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("sys.stdout", Full())
    with pytest.raises(OSError):
        TOP._print_message("text", __import__("sys").stdout)
    assert isinstance(TOP, argparse.ArgumentParser)
