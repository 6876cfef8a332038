#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Switches off one rule of feasibility at a time: the property test `feasibility_rules` must then fail.

    tests/mutations.py [BUILD]               (default: build/dev, which must hold libgpusched_test_main.a and
    libgpusched_core.a)
    tests/mutations.py --only gpu --only spread

All mutants are in one program, made of a copy of `include` and `src`, and `GPUSCHED_MUTANT` chooses one.
Without it the test must pass. Exit status 1 if a mutant survives, or if the text that it changes is no longer
there.
"""

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TEST = ROOT / "tests/property/model/feasibility_rules.cpp"

FEASIBILITY = "src/model/feasibility.cpp"
NODE_MATCH = "src/model/node_match.hpp"
INVENTORY = "include/gpusched/model/inventory.hpp"

# name: (file, text, what stands there instead); OFF is true in that mutant.
MUTANTS = {
    "cordoned": (FEASIBILITY, "if (!inv.nodes.receives(node))", "if (!OFF && !inv.nodes.receives(node))"),
    "gpu_model": (NODE_MATCH, "return models.empty() ||", "return OFF || models.empty() ||"),
    "node_selector": (
        NODE_MATCH,
        "return std::all_of(selector.begin",
        "return OFF || std::all_of(selector.begin",
    ),
    "node_affinity": (NODE_MATCH, "return affinity.empty() ||", "return OFF || affinity.empty() ||"),
    "node_set": (INVENTORY, "|| in_node_set(tasks.extras", "|| OFF || in_node_set(tasks.extras"),
    "taint": (
        NODE_MATCH,
        "return std::all_of(node_class.taints",
        "return OFF || std::all_of(node_class.taints",
    ),
    "cpu": (FEASIBILITY, "if (t.cpu_milli[i] >", "if (!OFF && t.cpu_milli[i] >"),
    "memory": (FEASIBILITY, "if (t.memory_mib[i] >", "if (!OFF && t.memory_mib[i] >"),
    "resource": (FEASIBILITY, "if (amount >", "if (!OFF && amount >"),
    "device": (FEASIBILITY, "return extras.device_count > 0 &&", "return !OFF && extras.device_count > 0 &&"),
    "gpu": (
        FEASIBILITY,
        "is_fraction(task)) return Obstacle::gpu;",
        "is_fraction(task)) return OFF ? Obstacle::none : Obstacle::gpu;",
    ),
    "gpu_memory": (FEASIBILITY, ": Obstacle::gpu_memory;", ": OFF ? Obstacle::none : Obstacle::gpu_memory;"),
    "hardware": (
        FEASIBILITY,
        "if (local.masks.empty()) return Obstacle::none;",
        "if (OFF || local.masks.empty()) return Obstacle::none;",
    ),
    "unknown hardware": (
        FEASIBILITY,
        "if (local.unknown) return Obstacle::",
        "if (local.unknown && !OFF) return Obstacle::",
    ),
    "anti_affinity": (FEASIBILITY, "if (others + 1 > limit)", "if (!OFF && others + 1 > limit)"),
    "smallest limit": (FEASIBILITY, "if (!set.uniform) {", "if (!OFF && !set.uniform) {"),
    "affinity": (
        FEASIBILITY,
        "if (kind == ignored) continue;",
        "if (kind == ignored || (OFF && !is_network)) continue;",
    ),
    "network": (FEASIBILITY, "if (elsewhere > 0)", "if (!(OFF && is_network) && elsewhere > 0)"),
    "avoid": (FEASIBILITY, "if (m.is_bound())\n", "if (!OFF && m.is_bound())\n"),
    "avoid, the other way": (FEASIBILITY, "if (m.is_member())\n", "if (!OFF && m.is_member())\n"),
    "near": (FEASIBILITY, "if (ignored == Obstacle::near ||", "if (OFF || ignored == Obstacle::near ||"),
    "spread": (FEASIBILITY, "if (ignored != Obstacle::spread)", "if (!OFF && ignored != Obstacle::spread)"),
    "min_domains": (FEASIBILITY, "if (rule.domains <", "if (!OFF && rule.domains <"),
}


def mutate(folder: Path) -> None:
    """Puts every mutant into the copy of `src/model` in `folder`; config.hpp gets the function that chooses
    one.
    """
    for number, (name, (file, old, new)) in enumerate(MUTANTS.items()):
        text = (folder / file).read_text()
        if text.count(old) != 1:
            sys.exit(f"{name}: {file} has {text.count(old)} times {old!r}; expected it once")
        (folder / file).write_text(text.replace(old, new.replace("OFF", f"(gpusched_mutant() == {number})")))
    config = folder / "include/gpusched/config.hpp"
    config.write_text(
        config.read_text()
        + """
#include <cstdlib>
inline int gpusched_mutant() {
    static const int mutant = std::getenv("GPUSCHED_MUTANT") ? std::atoi(std::getenv("GPUSCHED_MUTANT")) : -1;
    return mutant;
}
"""
    )


def compiler_and_flags(build: Path) -> list[str]:
    """How the build compiles the test, without its folders of headers, precompiled headers, input and output.
    """
    commands = json.loads((build / "compile_commands.json").read_text())
    words = shlex.split(next(one["command"] for one in commands if "test_property_model" in one["command"]))
    words = words[words.index(next(w for w in words if w.endswith("++") or "++-" in w)) :]
    kept = [w for w in words if w.startswith(("-D", "-std", "-f")) and not w.startswith("-fpch")]
    systems = [part for at, w in enumerate(words) if w == "-isystem" for part in words[at : at + 2]]
    return [words[0], *kept, *systems]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("build", nargs="?", type=Path, default=ROOT / "build/dev")
    parser.add_argument(
        "--only", action="append", choices=list(MUTANTS), metavar="NAME", help="this mutant; may be repeated"
    )
    arguments = parser.parse_args()
    survived = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for part in ("include", "src"):
            shutil.copytree(ROOT / part, copy / part)
        mutate(copy)
        # The whole folder as one source, so that the linker takes no object of the model from the library.
        sources = sorted((copy / "src/model").glob("*.cpp"))
        model = copy / "model.cpp"
        model.write_text(
            "#include <gpusched/config.hpp>\n" + "".join(f'#include "{source}"\n' for source in sources)
        )
        program = copy / "feasibility_rules"
        command = compiler_and_flags(arguments.build)
        catch = [] if "-DGPUSCHED_CATCH2_V2" in command else ["-lCatch2Main", "-lCatch2"]
        main_of_catch = arguments.build / "tests/libgpusched_test_main.a"
        subprocess.run(
            [
                *command,
                "-O1",
                "-w",
                f"-I{copy / 'include'}",
                f"-I{copy / 'src'}",
                f"-I{ROOT / 'tests'}",
                str(TEST),
                str(model),
            ]
            + [str(main_of_catch), str(arguments.build / "libgpusched_core.a"), *catch, "-o", str(program)],
            check=True,
        )

        def passes(**environment: str) -> bool:
            return (
                subprocess.run(
                    [program], env=os.environ | environment, stdout=subprocess.DEVNULL, check=False
                ).returncode
                == 0
            )

        for number, name in enumerate(MUTANTS):
            if arguments.only and name not in arguments.only:
                continue
            alive = passes(GPUSCHED_MUTANT=str(number))
            print(f"{name}: {'survives' if alive else 'killed'}", flush=True)
            survived += [name] * alive
        if not passes():
            sys.exit("the test fails without a mutant")
    print(f"{len(survived)} survive")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
