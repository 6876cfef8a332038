# SPDX-License-Identifier: Apache-2.0
"""What `gpusched plan-serving` and `gpusched serving-curve` print of what was asked, and what they do with
options given twice.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from gpusched import cli, serving
from gpusched._commands import serving as commands
from gpusched._commands.serving import restarts
from messages import mention, mentions, problems_in
from rate_requests import row

pytestmark = pytest.mark.usefixtures("solver")


def request(kinds: dict[str, float], **more: Any) -> dict[str, Any]:
    """A model on H100 in groups of four, of which each was measured to serve 10 requests/s of any kind."""
    workloads = {name: {"input": 500, "output": 250, "rate": rate} for name, rate in kinds.items()}
    return {
        "gpus": {"H100": {"machines": 4, "price": 3.0}},
        "models": {"Llama-3-70B": {"workloads": workloads}},
        "measured": [row("H100 1x4", name, 10.0) for name in kinds],
        **more,
    }


def two_models() -> dict[str, Any]:
    asked = request({"chat": 3.0, "code": 1.0})
    asked["models"]["Llama-3-8B"] = {"workloads": {"chat": {"input": 500, "output": 250, "rate": 5.0}}}
    asked["measured"].append(row("H100 1x1", "chat", 10.0, model="Llama-3-8B"))
    return asked


class Console:
    """The console script in a folder of its own."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys = folder, capsys

    def file(self, name: str, document: dict[str, Any]) -> str:
        path = self.folder / name
        path.write_text(json.dumps(document))
        return str(path)

    def __call__(self, *words: str, code: int = 0) -> list[str]:
        """The lines of standard output, or of standard error if the call is refused."""
        try:
            found = cli.main(words)
        except SystemExit as refused:
            found = refused.code
        printed = self.capsys.readouterr()
        assert found == code, printed.err
        return (printed.err if code == 2 else printed.out).splitlines()

    def rates(self, *words: str) -> dict[tuple[str, str], float]:
        """The rates of a plan, by model and kind."""
        self(*words, "--measured-only", "-o", str(self.folder / "out.json"))
        plan = json.loads((self.folder / "out.json").read_text())
        return {(kind["model"], kind["workload"]): kind["rate"] for kind in plan["latencies"]}


@pytest.fixture
def console(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Console:
    return Console(tmp_path, capsys)


def cells(lines: list[str], first: str) -> list[str]:
    """The cells of the table row that begins with a name."""
    (line,) = (line for line in lines if line.split()[:1] == [first])
    return line.split()


def test_tables_name_the_model_if_there_are_several(console: Console) -> None:
    lines = console("plan-serving", console.file("two.json", two_models()), "--measured-only")
    assert lines[0].split()[:3] == ["model", "deployment", "replicas"]
    runs = {tuple(line.split()[:3]) for line in lines[2:4]}
    assert ("Llama-3-8B", "H100", "1x1") in runs and ("Llama-3-70B", "H100", "1x4") in runs
    at = next(i for i, line in enumerate(lines) if line.split()[:2] == ["model", "workload"])
    assert [line.split()[:3] for line in lines[at + 1 :] if line.startswith("Llama")] == [
        ["Llama-3-70B", "chat", "3"], ["Llama-3-70B", "code", "1"], ["Llama-3-8B", "chat", "5"],
    ]  # fmt: skip
    lines = console("plan-serving", console.file("one.json", request({"chat": 3.0})), "--measured-only")
    assert lines[0].split()[0] == "deployment" and not any("model" in line for line in lines[:4])


def test_rates_name_the_model_if_several_have_the_kind(console: Console) -> None:
    two = console.file("two.json", two_models())
    wanted = {("Llama-3-70B", "chat"): 2.0, ("Llama-3-70B", "code"): 4.0, ("Llama-3-8B", "chat"): 7.0}
    words = "Llama-3-70B/chat=2,code=4,Llama-3-8B/chat=7"
    assert console.rates("plan-serving", two, "--rate", words) == pytest.approx(wanted)
    rate = {"Llama-3-70B/chat": 2.0, "Llama-3-70B/code": 4.0, "Llama-3-8B/chat": 7.0}
    plan = serving.plan_serving(two_models(), rate=rate, measured_only=True)
    found = {(kind["model"], kind["workload"]): kind["rate"] for kind in plan.latencies}
    assert found == pytest.approx(wanted)
    assert plan.rate == pytest.approx(13)
    # A kind that is not named gets none.
    one = serving.plan_serving(two_models(), rate={"Llama-3-8B/chat": 6.0}, measured_only=True)
    assert one.rate == pytest.approx(6)
    both = "rate: 'chat'; expected 'Llama-3-70B/chat' or 'Llama-3-8B/chat'"
    assert mention(problems_in(serving.plan_serving, two_models(), rate={"chat": 10.0}), [both])
    assert mention(console("plan-serving", two, "--rate", "chat=10", code=2), [f"--{both}"])


def test_rates_given_twice_add_up_or_are_refused(console: Console) -> None:
    asked = console.file("request.json", request({"chat": 3.0, "code": 1.0}))
    assert console.rates("plan-serving", asked, "--rate", "chat=10", "--rate", "code=2") == pytest.approx(
        {("Llama-3-70B", "chat"): 10.0, ("Llama-3-70B", "code"): 2.0}
    )
    for words, told in (
        (["--rate", "chat=10", "--rate", "code=2,chat=3"], "argument --rate: 'chat' is given twice"),
        (
            ["--rate", "10", "--rate", "chat=3"],
            "argument --rate: given twice; expected one value for all kinds",
        ),
        (["--rate", "x", "--rate", "12"], "argument --rate: 'x' is no rate"),
    ):
        (line,) = console("plan-serving", asked, *words, code=2)
        assert mentions(line, told)
    lines = console("serving-curve", asked, "--rates", "4", "--rates", "8,12", "--measured-only")
    assert [line.split()[0] for line in lines[2:5]] == ["4", "8", "12"]


def test_only_kinds_with_targets_are_kept(console: Console) -> None:
    def verdicts(asked: dict[str, Any], *words: str) -> dict[str, str]:
        lines = console("plan-serving", console.file("request.json", asked), "--measured-only", *words)
        at = next(i for i, line in enumerate(lines) if line.split()[0] == "workload")
        return {line.split()[0]: line.split()[-1] for line in lines[at + 2 : at + 4]}

    asked = request({"chat": 3.0, "code": 1.0})
    assert verdicts(asked) == {"chat": "none", "code": "none"}
    assert verdicts(asked, "--ttft-p90", "9") == {"chat": "kept", "code": "kept"}
    asked["models"]["Llama-3-70B"]["workloads"]["code"]["targets"] = {"tpot_p90_s": 1.0}
    assert verdicts(asked) == {"chat": "none", "code": "kept"}
    assert verdicts({**asked, "targets": {"ttft_p90_s": 9.0}}) == {"chat": "kept", "code": "kept"}


def test_errors_of_estimates_are_printed_and_planned_for(console: Console) -> None:
    path = console.file("asked.json", request({"chat": 8.0}, measured=[]))
    usual, long = console("plan-serving", path), console("plan-serving", path, "--error", "p90")
    for lines in (usual, long):
        assert mentions(lines, "estimates of Llama-3-70B on H100 token time first token comparable measurements")
    each = [float(" ".join(lines).split("(estimated ")[1].split("/s")[0]) for lines in (usual, long)]
    assert each[1] < each[0]


def test_the_message_of_a_plan_is_printed(console: Console) -> None:
    # A group serves 10 requests/s and 5 of them within the target: two are needed where the bound counts one.
    rows = [row("H100 1x4", "chat", r, tpot_s=t) for r, t in ((5.0, 0.05), (10.0, 0.1))]
    asked = console.file("request.json", {**request({"chat": 8.0}), "measured": rows})
    lines = console("plan-serving", asked, "--measured-only", "--tpot-p90", "0.05")
    assert mentions(lines, "the bound ignores queueing; a cheaper plan may meet the targets")


def test_curves_keep_the_targets_of_options_and_request(console: Console) -> None:
    asked = request({"chat": 3.0, "code": 1.0}, targets={"tpot_p90_s": 0.9})
    file = console.file("request.json", asked)
    curve = ["serving-curve", file, "--rates", "5", "--measured-only"]
    lines = console(*curve, "--ttft-p99", "1e-4", "--targets", "ttft_p90=1", code=1)
    assert lines[0].split()[:4] == ["rate", "ttft_p90_s", "ttft_p99_s", "tpot_p90_s"]
    # Nothing is proved of the cost of a plan that cannot be.
    assert lines[2].split()[:7] == ["5", "1", "0.0001", "0.9", "infeasible", "-", "-"]
    assert any(mentions(line, "ttft_p99_s of 0.0001 s is less than") for line in lines)
    # A set goes before the options, and these before the request.
    sets = [{"tpot_p90_s": 0.5}, {"ttft_p90_s": 2.0}]
    table = serving.curve(asked, [5], sets, tpot_p90_s=0.7, measured_only=True)
    assert [(point.ttft_p90_s, point.tpot_p90_s) for point in table] == [(None, 0.5), (2.0, 0.7)]
    # If kinds differ, the shortest; the console names the kind.
    kinds = asked["models"]["Llama-3-70B"]["workloads"]
    kinds["code"]["targets"] = {"tpot_p90_s": 0.6, "ttft_p90_s": 3.0}
    table = serving.curve(asked, [5], measured_only=True)
    assert [(point.ttft_p90_s, point.tpot_p90_s) for point in table] == [(3.0, 0.6)]
    console.file("request.json", asked)
    first, second = console(*curve)[3:]
    assert mentions(first, "ttft_p90_s in the request: 3 for code")
    assert mentions(second, "tpot_p90_s in the request: 0.9 for chat, 0.6 for code")
    lines = console(*curve, "--tpot-p90", "0.8", "--targets", "ttft_p90=2")
    assert cells(lines, "5")[1:3] == ["2", "0.8"] and len(lines) == 3


def test_ranges_of_prices_name_the_plans_compared(capsys: pytest.CaptureFixture[str]) -> None:
    ranges = [{"gpu": "H100", "spot": False, "price": 3.0, "low": 1.0, "high": 4.0, "proven": True}]

    def said(**plan: Any) -> str:
        commands.say_ranges(
            SimpleNamespace(**{"capacity": 1.0, "separate": False, "price_ranges": ranges, **plan})
        )  # type: ignore[arg-type]
        return capsys.readouterr().out

    cheapest = "stays the cheapest while H100 costs 1 to 4 $/h (now 3)\n"
    assert said() == cheapest
    assert mentions(said(capacity=0.9), f"plans replicas (capacity 0.9), it {cheapest}")
    assert mentions(
        said(capacity=1.25, separate=True),
        f"plans replicas (capacity 1.25) kinds of requests apart, it {cheapest}",
    )


def test_replanning_lists_starts_stops_and_restarts(console: Console) -> None:
    spot = request({"chat": 35.0})
    spot["gpus"]["H100"].update(spot_price=1.4, spot_available=16)
    options = ["--measured-only", "--machines"]
    before = str(console.folder / "before.json")
    lines = console("plan-serving", console.file("spot.json", spot), *options, "-o", before)
    assert any(line.startswith("rent 2 machines of 8 H100 (spot)") for line in lines)

    def change(asked: dict[str, Any], *words: str) -> list[str]:
        file = console.file("changed.json", asked)
        lines = console("plan-serving", file, *options, "--replan-from", before, *words)
        at = next(i for i, line in enumerate(lines) if line.startswith("starts "))
        return [line for line in lines[at:] if not line.startswith("the cheapest")]

    assert change(spot) == ["starts 0 replicas and stops 0"]
    # All spot GPUs, or half of them, are gone: what ran on them goes on elsewhere.
    move = "of the replicas that go on must restart on other GPUs"
    gone = request({"chat": 35.0})
    assert mention(change(gone), ["starts 0 replicas and stops 0", f"at least 4 {move}: 16 spot H100"])
    spot["gpus"]["H100"]["spot_available"] = 8
    assert mention(change(spot), ["starts 0 replicas and stops 0", f"at least 2 {move}: 8 spot H100"])
    spot["gpus"]["H100"]["spot_available"] = 16
    assert change(spot, "--rate", "chat=44") == ["starts 1 replica (1 H100 1x4) and stops 0"]
    assert change(spot, "--rate", "chat=17") == ["starts 0 replicas and stops 2 (2 H100 1x4)"]
    # Another deployment takes over.
    larger = {**spot, "measured": [row("H100 1x8", "chat", 40.0)]}
    assert change(larger) == ["starts 1 replica (1 H100 1x8) and stops 4 (4 H100 1x4)"]
    document = json.loads(Path(before).read_text())
    for wrong, told in (
        (
            {"gpu": "H100", "count": 8},
            "rentals[0]: {'gpu': 'H100', 'count': 8}; expected gpu, count and spot,",
        ),
        ("H100", "rentals[0]: 'H100'; expected gpu, count and spot"),
    ):
        plan = console.file("plan.json", {**document, "rentals": [wrong]})
        (line,) = console("plan-serving", console.file("spot.json", spot), "--replan-from", plan, code=2)
        assert mentions(line, f"{plan} {told}")
    # A plan of version 1 says nothing of rentals.
    plan = console.file("plan.json", {name: value for name, value in document.items() if name != "rentals"})
    assert "starts 0 replicas and stops 0" in console(
        "plan-serving", console.file("spot.json", gone), *options, "--replan-from", plan
    )


def test_replicas_that_restart_are_counted_by_the_gpus_that_stay() -> None:
    def runs(model: str, count: int, **gpus: int) -> dict[str, Any]:
        stages = [{"gpu": gpu, "degree": degree, "layers": 40} for gpu, degree in gpus.items()]
        return {"model": model, "deployment": "any", "count": count, "stages": stages}

    def rents(gpu: str, count: int, spot: int = 0) -> dict[str, Any]:
        return {"gpu": gpu, "count": count, "spot": spot}

    def found(
        replicas: list[dict[str, Any]], old: list[dict[str, Any]], new: list[dict[str, Any]]
    ) -> str | None:
        told = restarts(
            {"replicas": replicas, "rentals": old}, SimpleNamespace(replicas=replicas, rentals=new)
        )  # type: ignore[arg-type]
        return told and told.split(" of the replicas")[0] + told.split("GPUs")[-1]

    both = [runs("a", 3, H100=4), runs("b", 4, H100=1)]
    assert found(both, [rents("H100", 8, 8)], [rents("H100", 8, 8)]) is None
    assert mentions(found(both, [rents("H100", 8, 8)], [rents("H100", 16)]), "at least 2: 8 spot H100 are")
    assert mentions(found(both, [rents("H100", 0, 16)], [rents("H100", 9, 7)]), "at least 3: 9 spot H100 are")
    assert mentions(found(both, [rents("H100", 16)], [rents("H100", 0, 16)]), "at least 7: 16 usual H100 are")
    # GPUs that served nothing may be given back.
    assert found([runs("a", 1, H100=4)], [rents("H100", 4, 4)], [rents("H100", 4)]) is None
    # A replica on two types is one replica.
    mixed = [runs("a", 2, H100=4, L40S=4)]
    spots = [rents("H100", 0, 8), rents("L40S", 0, 8)]
    for rest, told in ((rents("L40S", 8), "and 8 spot L40S are"), (rents("L40S", 0, 8), "are")):
        new = [rents("H100", 8), rest]
        assert mentions(found(mixed, spots, new), f"at least 2: 8 spot H100 {told}")
