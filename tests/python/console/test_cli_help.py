# SPDX-License-Identifier: Apache-2.0
"""The console script's manners: help and defaults, no abbreviations, nearest names, completion, singular and
plural.
"""

import argparse
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
        (["report", "{}", "--job-gpus", "0"], "gpusched --job-gpus 0"),
        (["report", "{}", "--shapes", "0x8"], "gpusched --shapes[0]"),
        (["consolidate", "{}", "--max-moves", "-1", "--exempt", "nobody"], "gpusched --max-moves -1"),
        (["consolidate", "{}", "--exempt", "nobody"], "gpusched --exempt unknown node 'nobody'"),
        (["consolidate", "{}", "--clear", ","], "--clear ','"),
        (["generate", "asi", "-o", "{}.json", "--load", "-1"], "gpusched --load -1"),
        (["generate", "open", "-o", "{}.json"], "'openb'"),
        (["kube", "snapshot", "-o", "{}.json", "--page-size", "0"], "gpusched --page-size 0 1 10000"),
        (["simulate-host", "--seeds", "-3"], "gpusched --seeds -3 1"),
        (["simulate-host", "--scenario", "table4"], "'table3'"),
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
    assert mentions(error, "arguments 3 '--max-moves'")
    assert "unrecognized arguments: --vers" in told(capsys, "report", "x.json", "--vers")


def test_unknown_commands_and_names_get_the_nearest_ones(capsys):
    assert mentions(told(capsys, "consolidat", "x.json"), "'consolidate'")
    assert mentions(told(capsys, "kube", "snapshots", "-o", "x.json"), "'snapshot'")
    assert mentions(told(capsys, "kube"), "required COMMAND")
    assert mentions(told(capsys, "kube", "snapshot", "-o", "x.json", "--incluster"), "'--in-cluster'")
    assert mentions(told(capsys, "consolidate", "x.json", "--preset", "bets"), "'best'")


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion_scripts(shell, tmp_path, capsys):
    pytest.importorskip("shtab")
    assert cli.main(["completion", shell]) == 0
    script = tmp_path / "completion"
    script.write_text(capsys.readouterr().out)
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    subprocess.run([shell, "-n", str(script)], check=True)


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
def test_bash_completes(words, expected, tmp_path, capsys):
    pytest.importorskip("shtab")
    cli.main(["completion", "bash"])
    script = tmp_path / "completion"
    script.write_text(capsys.readouterr().out)
    (tmp_path / "cluster.json").write_text("")
    quoted = " ".join(f"'{word}'" for word in words)
    line = (
        f"source {script}; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; "
        'COMP_LINE="${COMP_WORDS[*]}"; COMP_POINT=${#COMP_LINE}; _shtab_gpusched; printf \'%s\\n\' "${COMPREPLY[@]}"'
    )
    run = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert sorted(word.strip() for word in run.stdout.split()) == expected, run.stderr


def test_one_is_not_several(tmp_path, capsys):
    path = str(tmp_path / "cluster.json")
    nodes = [make_node("a", gpu_count=1)]
    gs.Cluster.from_json(document(nodes, [make_task("t", node="a", gpus=[0])])).to_json(path)
    assert cli.main(["report", path, "--shapes", "1x8", "--job-gpus", "1"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("1 node, 1 GPU, 1 task (0 pending, 0 locked)\n") and "Jobs of 1 GPU that" in out
    assert cli.main(["consolidate", path]) == 0
    assert mentions(capsys.readouterr().out, "0 nodes GPUs vacated waves")


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
