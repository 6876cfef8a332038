# SPDX-License-Identifier: Apache-2.0
"""Command lines of engines and Kubernetes manifests describe the replicas, GPUs and routes of a plan."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from gpusched import cli, serving
from messages import mentions, problems_in
from rate_requests import row

ENGINES = ("vllm", "sglang")
FLAGS = {
    "vllm": {
        "tensor": "--tensor-parallel-size",
        "pipeline": "--pipeline-parallel-size",
        "memory": "--gpu-memory-utilization",
        "batch": "--max-num-seqs",
        "length": "--max-model-len",
        "layers": "VLLM_PP_LAYER_PARTITION",
    },
    "sglang": {
        "tensor": "--tp-size",
        "pipeline": "--pp-size",
        "memory": "--mem-fraction-static",
        "batch": "--max-running-requests",
        "length": "--context-length",
        "layers": "SGLANG_PP_LAYER_PARTITION",
    },
}
SHAPE = {"input": 500, "output": 250, "rate": 4.0}
FIELDS = {
    "layers": 80, "hidden": 4096, "heads": 32, "kv_heads": 8, "head_size": 128, "intermediate": 14336,
    "vocabulary": 128256,
}  # fmt: skip


def request(model: str = "Llama-3-70B", **fields: Any) -> dict[str, Any]:
    return {
        "gpus": {
            "H100": {"available": 32},
            "A100": {"available": 32},
            "A40": {"available": 32},
            "MI300X": {"available": 8, "price": 2},
            "mine": {"type": "T4", "available": 8, "per_machine": 8, "price": 1, "region": "eu"},
            "other": {"type": "H100", "available": 8, "per_machine": 2},
        },
        "models": {model: {**fields, "workloads": {"chat": SHAPE, "code": {**SHAPE, "input": 1500}}}},
    }


def replicas(stages: str, count: int = 1, model: str = "Llama-3-70B", **more: Any) -> dict[str, Any]:
    """Replicas with stages such as `H100*4:80`: GPU type, degree and layers."""
    parts = [re.fullmatch(r"(\w+)\*(\d+):(\d+)", stage) for stage in stages.split()]
    listed = [{"gpu": p[1], "degree": int(p[2]), "layers": int(p[3])} for p in parts if p]
    return {"model": model, "count": count, "share": {"chat": 1.0}, "stages": listed, **more}


def parse(command: str) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """Environment variables, options and other words of a command."""
    words = shlex.split(command, comments=True)
    environment = {}
    while "=" in words[0]:
        name, _, environment[name] = words.pop(0).partition("=")
    options = {}
    others = []
    while words:
        word = words.pop(0)
        if word.startswith("--"):
            options[word] = words.pop(0) if words and not words[0].startswith("--") else ""
        else:
            others.append(word)
    return environment, options, others


def documents(text: str) -> list[dict[str, Any]]:
    yaml = pytest.importorskip("yaml")
    return [document for document in yaml.safe_load_all(text) if document is not None]


def pods_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The pod templates of a workload, once for each pod."""
    spec = document["spec"]
    if document["kind"] == "Deployment":
        return [spec["template"]] * spec["replicas"]
    group = spec["leaderWorkerTemplate"]
    return [group["leaderTemplate"], *[group["workerTemplate"]] * (group["size"] - 1)] * spec["replicas"]


CASES = {
    "one stage": [replicas("H100*4:80", 3)],
    "unequal layers on one machine": [replicas("A40*2:30 A40*2:26 A40*2:24", 2)],
    "two machines": [replicas("H100*8:40 H100*8:40")],
    "three machines with two stages each": [
        replicas("A40*4:14 A40*4:14 A40*4:13 A40*4:13 A40*4:13 A40*4:13")
    ],
    "two GPU types": [replicas("H100*2:50 A100*2:30", 2)],
    "three machines with two GPU types": [replicas("H100*4:40 A40*4:20 A40*4:20")],
    "small machines": [replicas("other*2:40 other*2:40")],
    "several deployments": [
        replicas("H100*4:80", 2, share={"chat": 0.75, "code": 0.4}),
        replicas("A100*8:80", 1, share={"chat": 0.25, "code": 0.6}),
    ],
    "one deployment twice": [replicas("H100*4:80", share={"chat": 0.5}),
        replicas("H100*4:80", share={"chat": 0.5})],
}  # fmt: skip
cases = pytest.mark.parametrize("plan", [pytest.param(plan, id=name) for name, plan in CASES.items()])


@pytest.mark.parametrize("engine", ENGINES)
@cases
def test_commands_have_the_gpus_and_layers_of_the_plan(plan: list[dict[str, Any]], engine: str) -> None:
    commands = [parse(command) for command in serving.command_lines(request(), plan, engine)]
    flags = FLAGS[engine]
    for each in plan:
        environment, options, words = commands[0]
        machines = int(options.get("--nnodes", "1"))
        ranks, commands = commands[:machines], commands[machines:]
        degree, stages = each["stages"][0]["degree"], each["stages"]
        assert [options.get("--node-rank", "0") for _, options, _ in ranks] == [
            str(i) for i in range(machines)
        ]
        assert "meta-llama/Meta-Llama-3-70B" in (*words, *options.values()) and len(words) <= 3
        for own, of_rank, _ in ranks:
            assert (of_rank[flags["tensor"]], of_rank[flags["pipeline"]]) == (str(degree), str(len(stages)))
            split = own.get(flags["layers"], "80").split(",")
            assert [int(layers) for layers in split] == [stage["layers"] for stage in stages]
    assert commands == []


@pytest.mark.parametrize("engine", ENGINES)
@cases
def test_manifests_have_the_gpus_of_the_plan(plan: list[dict[str, Any]], engine: str) -> None:
    product = {"H100": "NVIDIA-H100-80GB-HBM3", "other": "NVIDIA-H100-80GB-HBM3"}
    product |= {"A100": "NVIDIA-A100-SXM4-80GB", "A40": "NVIDIA-A40"}
    expected: Counter[str] = Counter()
    for each in plan:
        for stage in each["stages"]:
            expected[product[stage["gpu"]]] += each["count"] * stage["degree"]
    found: Counter[str] = Counter()
    made = documents(serving.manifests(request(), plan, engine, namespace="serving"))
    workloads = [each for each in made if each["kind"] != "Service"]
    services = [each for each in made if each["kind"] == "Service"]
    assert len(workloads) == len(services) == len(plan)
    for each, workload, service in zip(plan, workloads, services):
        assert workload["spec"]["replicas"] == each["count"]
        templates = pods_of(workload)
        for template in templates:
            (container,) = template["spec"]["containers"]
            gpus = container["resources"]["limits"]["nvidia.com/gpu"]
            found[template["spec"]["nodeSelector"]["nvidia.com/gpu.product"]] += gpus
        # Requests reach the first pod of each replica, and no other.
        reached = [
            template
            for template in templates
            if service["spec"]["selector"].items() <= template["metadata"]["labels"].items()
        ]
        assert len(reached) == each["count"]
        assert all("readinessProbe" in template["spec"]["containers"][0] for template in reached)
    assert found == expected
    names = [(each["kind"], each["metadata"]["name"]) for each in made]
    assert len(set(names)) == len(names)
    assert {each["metadata"]["namespace"] for each in made} == {"serving"}


def test_shares_of_routes_sum_to_one() -> None:
    text = serving.manifests(request(), CASES["several deployments"])
    services = {each["metadata"]["name"] for each in documents(text) if each["kind"] == "Service"}
    shares: Counter[str] = Counter()
    commands = "\n".join(serving.command_lines(request(), CASES["several deployments"]))
    for kind, service, share in re.findall(r"^#   Llama-3-70B, (\w+): (\S+) (\S+) %", text, re.M):
        assert service in services
        shares[kind] += float(share)
    assert shares == {"chat": 100, "code": 100}
    for kind in shares:
        assert sum(map(float, re.findall(rf"serves (\S+) % .* of the {kind} requests", commands))) == 100


@pytest.mark.parametrize(
    "counts, machines",
    [
        ({4: 2}, 1),
        ({5: 3}, 3),  # no two fit on a machine of 8
        ({5: 2, 3: 1, 2: 2}, 3),
        ({8: 1, 4: 3, 2: 2, 1: 5}, 4),
        ({5: 10**8, 2: 10**8, 1: 10**8}, 10**8),
    ],
)
def test_machines_that_the_pods_need(counts: dict[int, int], machines: int) -> None:
    layers = {gpus: [80 // gpus + (at < 80 % gpus) for at in range(gpus)] for gpus in counts}
    plan = [
        replicas(" ".join(f"A40*1:{n}" for n in layers[gpus]), count, share={"chat": 1 / len(counts)})
        for gpus, count in counts.items()
    ]
    text = serving.manifests(request(), plan)
    found = re.search(r"A40: ([\d,]+) GPUs in ([\d,]+) pods on ([\d,]+) machine", text)
    assert found is not None
    gpus = sum(size * count for size, count in counts.items())
    expected = [gpus, sum(counts.values()), machines]
    assert [int(number.replace(",", "")) for number in found.groups()] == expected


@pytest.mark.parametrize("engine", ENGINES)
def test_settings_of_the_plan_become_flags(engine: str) -> None:
    flags = FLAGS[engine]
    estimate = {"memory_fraction": 0.85, "max_batch": 48}
    plan = [replicas("mine*8:80", share={"chat": 1.0, "code": 1.0})]
    asked = request(bytes_per_weight=1, bytes_per_kv=1)
    (command,) = serving.command_lines(asked, plan, engine, estimate=estimate)
    _, options, _ = parse(command)
    found = {name: options[flags[name]] for name in ("memory", "batch", "length")}
    assert found == {"memory": "0.85", "batch": "48", "length": "1750"}
    assert options["--kv-cache-dtype"].startswith("fp8") and options["--quantization"] == "fp8"
    assert options["--dtype"] == "half"  # T4 has no bfloat16
    (command,) = serving.command_lines(
        asked, plan, engine, model_ids={"Llama-3-70B": "a/b-FP8"}, max_model_len=8192
    )
    _, options, words = parse(command)
    assert options[flags["length"]] == "8192" and "--quantization" not in options
    assert "a/b-FP8" in (*words, *options.values())
    (pod,) = pods_of(documents(serving.manifests(asked, plan, engine, image="own:1"))[0])
    assert pod["spec"]["nodeSelector"]["topology.kubernetes.io/region"] == "eu"
    assert pod["spec"]["containers"][0]["image"] == "own:1"


@pytest.mark.parametrize("engine", ENGINES)
def test_comments_name_the_settings(engine: str) -> None:
    (command,) = serving.command_lines(request(), [replicas("H100*4:80")], engine, estimate={"max_batch": 48})
    comments = " ".join(line for line in command.splitlines() if line.startswith("#"))
    for flag in ("memory", "batch", "length"):
        assert FLAGS[engine][flag] in comments
    assert all(setting in comments for setting in ("0.9", "48", "750", "meta-llama/Meta-Llama-3-70B"))


ODD = (
    "Qwen/Qwen2.5 72B_Instruct", "4-bit", "模型", "x" * 200, "-", "a\nkind: Secret", "a\n---\nb",
        "y\x85z\u2028rm -rf",
    "$(touch x)", "'quoted\"", "NO",
)  # fmt: skip


@pytest.mark.parametrize("model", ODD)
def test_odd_names(model: str) -> None:
    asked = request(model, **FIELDS)
    asked["models"][model]["workloads"][model] = SHAPE  # a kind with the same name
    share = {model: 0.5}
    plan = [
        replicas("H100*4:80", 2, model, share=share),
        replicas(
            "H100*2:40 A100*2:40", 1, model, share=share, source={model: model}, requests_per_s={model: 1}
        ),
    ]
    ids = {model: "no"}
    made = documents(serving.manifests(asked, plan, model_ids=ids))
    assert [each["kind"] for each in made] == ["Deployment", "Service", "LeaderWorkerSet", "Service"]
    for each in made:
        labels = [each["metadata"]["name"], *each["metadata"]["labels"].values()]
        assert all(re.fullmatch(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?", name) for name in labels)
        for template in pods_of(each) if each["kind"] != "Service" else ():
            assert template["spec"]["containers"][0]["command"][:3] == ["vllm", "serve", "no"]
    assert len({each["metadata"]["name"] for each in made}) == 3  # a Deployment and its Service share a name
    for command in serving.command_lines(asked, plan, model_ids=ids):
        _, options, words = parse(command)
        assert words == ["vllm", "serve", "no"]
        script = "vllm() { printf '%s\\n' \"$@\"; }\nLEADER_ADDRESS=first\n" + command
        run = subprocess.run(["bash", "-c", script], check=True, capture_output=True, text=True)
        assert run.stderr == "" and run.stdout.split()[:2] == words[1:]
        if "--nnodes" in options:
            assert "--master-addr\nfirst\n" in run.stdout


ERRORS: dict[str, tuple[Any, dict[str, Any], list[str]]] = {
    "engine": ([replicas("H100*4:80")], {"engine": "vlm"}, ["engine", "'vlm'", "vllm"]),
    "no replicas": ([], {}, ["replicas"]),
    "unequal degrees": ([replicas("A100*2:20 A100*4:60")], {}, ["/replicas/0", "A100 1x2+A100 1x4", "2, 4"]),
    "other model": ([replicas("H100*4:80", model="mistral")], {}, ["/replicas/0", "'mistral'"]),
    "other GPU": ([replicas("H300*4:80")], {}, ["/replicas/0", "'H300'"]),
    "other kind": ([replicas("H100*4:80", share={"talk": 1.0})], {}, ["/replicas/0", "'talk'"]),
    "other layers": ([replicas("H100*4:70")], {}, ["/replicas/0", "70", "80"]),
    "heads": ([replicas("H100*6:80")], {}, ["H100 1x6", "6", "64"]),
    "machine": ([replicas("other*4:80")], {}, ["other 1x4", "4"]),
    "short": ([replicas("H100*4:80")], {"max_model_len": 100}, ["max_model_len", "100", "750"]),
    "id": ([replicas("H100*4:80")], {"model_ids": {"Llama-3-70B": "-x y"}}, ["model_ids", "'-x y'"]),
    "id of another": ([replicas("H100*4:80")], {"model_ids": {"LLama": "a/b"}}, ["model_ids", "'LLama'"]),
    "count": ([replicas("H100*4:80", 0)], {}, ["/replicas/0/count", "0"]),
    "share": ([replicas("H100*4:80", share={"chat": 1.5})], {}, ["/replicas/0/share/chat", "1.5"]),
    "cost": ([replicas("H100*4:80", cost="x")], {}, ["/replicas/0/cost", "'x'"]),
    "speed": (
        [replicas("H100*4:80", requests_per_s={"chat": "x"})],
        {},
        ["/replicas/0/requests_per_s", "'x'"],
    ),
    "source": ([replicas("H100*4:80", source=3)], {}, ["/replicas/0/source", "3"]),
    "latencies": (
        {"replicas": [replicas("H100*4:80")], "latencies": [{"model": "m"}]},
        {},
        ["/latencies/0", "'workload'"],
    ),
    "no shares": ([{"model": "Llama-3-70B", "count": 1, "stages": []}], {}, ["plan: /replicas/0", "'share'"]),
    "no plan": (None, {}, ["plan: expected"]),
    "rentals": ({"replicas": [replicas("H100*4:80")], "rentals": 3}, {}, ["/rentals", "3"]),
    "memory": ([replicas("H100*4:80")], {"estimate": {"memory_fraction": 7}}, ["memory_fraction", "7"]),
    "estimate": ([replicas("H100*4:80")], {"estimate": {"batch": 3}}, ["estimate", "'batch'"]),
}


@pytest.mark.parametrize("call", [serving.command_lines, serving.manifests])
@pytest.mark.parametrize("plan, options, names", [pytest.param(*e, id=n) for n, e in ERRORS.items()])
def test_mistakes_are_named(call: Any, plan: Any, options: dict[str, Any], names: list[str]) -> None:
    (problem,) = problems_in(call, request(), plan, **options)
    assert all(name in problem for name in names), problem


@pytest.mark.parametrize(
    "stages, options, names",
    [
        ("H100*4:40 H100*4:10 A100*4:10 A40*4:20", {}, ["GPU types"]),
        ("MI300X*4:80", {}, ["MI300X"]),
        ("H100*4:80", {"namespace": "Prod"}, ["namespace", "'Prod'"]),
        ("H100*4:80", {"image": "a b"}, ["image", "'a b'"]),
    ],
)
def test_mistakes_of_manifests(stages: str, options: dict[str, Any], names: list[str]) -> None:
    assert serving.command_lines(request(), [replicas(stages)])
    (problem,) = problems_in(serving.manifests, request(), [replicas(stages)], **options)
    assert all(name in problem for name in names), problem


def test_all_models_need_a_checkpoint() -> None:
    asked = request("own", **FIELDS)
    (problem,) = problems_in(serving.command_lines, asked, [replicas("H100*4:80", model="own")])
    assert "'own'" in problem and "model_ids" in problem
    asked = request(hidden=4096)  # not the shape of the known checkpoint
    (problem,) = problems_in(serving.command_lines, asked, [replicas("H100*4:80")])
    assert "'Llama-3-70B'" in problem and "model_ids" in problem
    complete = serving.request_to_dict({"budget": 1, **request()})
    assert serving.command_lines(complete, [replicas("H100*4:80")])
    asked = request(bytes_per_weight=0.5, bytes_per_kv=2)
    (problem,) = problems_in(serving.command_lines, asked, [replicas("H100*4:80")])
    assert "0.5" in problem and "model_ids" in problem
    (command,) = serving.command_lines(request("org/own", **FIELDS), [replicas("H100*4:80", model="org/own")])
    assert parse(command)[2] == ["vllm", "serve", "org/own"]
    ids = {"Llama-3-70B": "org/70B-AWQ"}
    assert "--quantization" not in serving.command_lines(asked, [replicas("H100*4:80")], model_ids=ids)[0]


@pytest.mark.usefixtures("solver")
def test_plans_and_their_documents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = {
        "gpus": {"H100": {"machines": 4, "price": 3.0}},
        "models": {"Llama-3-70B": {"workloads": {"chat": SHAPE}}},
        "measured": [row("H100 1x4", "chat", 10.0)],
    }
    plan = serving.plan_serving(asked, rate=25.0, measured_only=True)
    for call in (serving.command_lines, serving.manifests):
        assert call(asked, plan) == call(asked, serving.plan_to_dict(plan))
    pods = pods_of(documents(serving.manifests(asked, plan))[0])
    gpus = [pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] for pod in pods]
    assert sum(gpus) == plan.rentals[0]["used"]
    assert "25 requests/s" in serving.command_lines(asked, plan)[0]

    without = {**asked, "models": {"Llama-3-70B": {"workloads": {"chat": {"input": 500, "output": 250}}}}}
    assert serving.command_lines(without, plan) == serving.command_lines(asked, plan)

    path = tmp_path / "request.json"
    path.write_text(json.dumps(asked))
    base = ["plan-serving", str(path), "--measured-only", "--rate", "25"]
    for file, options, text in (
        ("serve.sh", [], "\n\n".join(serving.command_lines(asked, plan)) + "\n"),
        ("serve.yaml", ["--engine", "sglang"], serving.manifests(asked, plan, "sglang")),
    ):
        assert cli.main([*base, *options, "--export", str(tmp_path / file)]) == 0
        assert (tmp_path / file).read_text() == text
    capsys.readouterr()
    for options, names in (
        (["--export", "serve.txt"], ["--export", "'serve.txt'"]),
        (["--engine", "vllm"], ["--engine", "--export"]),
        (["--export", str(tmp_path / "a.sh"), "--model-ids", "L=a/b"], ["--model-ids", "'L'"]),
    ):
        assert cli.main([*base, *options]) == 2
        printed = capsys.readouterr().err
        assert all(name in printed for name in names), printed


@pytest.mark.parametrize(
    ("changes", "options", "says"),
    [
        ({}, ["--max-model-len", "100"], "model 'Llama-3-70B' max_model_len 100 750"),
        ({"bytes_per_kv": 4}, [], "model 'Llama-3-70B' bytes_per_kv 4"),
        ({"region": "US East (Ohio)"}, [], "gpus 'H100' region 'US East (Ohio)' label"),
        ({"region": "-eu"}, [], "gpus 'H100' region '-eu' label"),
    ],
)
def test_an_export_that_must_fail_is_refused_before_the_plan(
    changes, options, says, tmp_path, capsys, monkeypatch
):
    asked = {
        "gpus": {"H100": {"available": 8, "price": 2.5, "region": changes.pop("region", "eu-1")}},
        "models": {
            "Llama-3-70B": {"workloads": {"chat": {"input": 500, "output": 250, "rate": 1.0}}, **changes}
        },
    }
    path = tmp_path / "request.json"
    path.write_text(json.dumps(asked))
    monkeypatch.setattr(serving, "plan_serving", lambda *_, **__: pytest.fail("planned"))
    words = ["plan-serving", str(path), *options, "--export"]
    assert cli.main([*words, str(tmp_path / "serve.yaml")]) == 2
    assert mentions(capsys.readouterr().err, says)
    assert cli.main([*words, str(tmp_path / "missing" / "serve.yaml")]) == 2
    capsys.readouterr()
    if "region" in says:  # only Kubernetes has regions
        with pytest.raises(pytest.fail.Exception, match="planned"):
            cli.main([*words, str(tmp_path / "serve.sh")])
