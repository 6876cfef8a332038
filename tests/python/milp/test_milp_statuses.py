# SPDX-License-Identifier: Apache-2.0
"""What solvers say of odd little models: infeasible, unbounded, or nothing; with any number of threads."""

import random
import subprocess
import sys
import threading
import time

import gpusched as gs
import numpy as np
import pytest
from milp_examples import EXAMPLE, data, solvers

pytest.importorskip("scipy")
milp = gs.milp
INF = np.inf


def small(c, rows, row_lower, row_upper, lower, upper, whole, *, maximise=False, offset=0.0):
    """A model of these arrays, through the form in which models are pickled."""
    floats = lambda values: np.asarray(values, dtype=np.float64).tobytes()  # noqa: E731
    ints = lambda values: np.asarray(values, dtype=np.int32).tobytes()  # noqa: E731
    names = lambda count, letter: tuple(f"{letter}{k}".encode() for k in range(count))  # noqa: E731
    matrix = np.asarray(rows, dtype=float).reshape(len(row_lower), len(c))
    columns = [np.flatnonzero(matrix[:, j]) for j in range(len(c))]
    start = np.cumsum([0, *(len(column) for column in columns)])
    index = [i for column in columns for i in column]
    value = [matrix[i, j] for j, column in enumerate(columns) for i in column]
    groups = (ints([0] * len(row_lower)), names(1, "g")) if row_lower else (ints([]), ())
    model = milp.Model.__new__(milp.Model)
    model.__setstate__(
        (b"small", int(maximise), float(offset), ints(start), ints(index), floats(value), floats(c),
            floats(lower),
         floats(upper), floats(row_lower), floats(row_upper), bytes(whole), names(len(c), "x"),
         names(len(row_lower), "r"), *groups, ())
    )  # fmt: skip
    return model


def drawn(seed):
    r = random.Random(seed)
    columns, rows = r.randint(1, 4), r.randint(0, 4)
    c = [r.randint(-5, 5) for _ in range(columns)]
    matrix = [[r.choice([0, 0, 1, -1, 2, 3, 0.5]) for _ in range(columns)] for _ in range(rows)]
    row_lower, row_upper = [], []
    for _ in range(rows):
        a, k = r.randint(-4, 6), r.random()
        row_lower.append(a if k < 0.6 else -INF)
        row_upper.append(a + r.choice([0, 1, 3]) if k > 0.3 else INF)
    lower = [r.choice([0, 0, -3, -INF, 1]) for _ in c]
    upper = [r.choice([INF, 4, 7, 2]) for _ in c]
    whole = [r.randint(0, 1) for _ in c]
    direction = {"maximise": bool(r.randint(0, 1)), "offset": r.randint(-3, 3)}
    return small(c, matrix, row_lower, row_upper, lower, upper, whole, **direction)


def test_solvers_agree_about_small_models():
    """Seeds 6, 58, 152, 449, 506, 792, 1318 and 5326 are among those about which some solver was wrong or
    gave up.
    """
    seen = {"optimal": 0, "infeasible": 0, "unbounded": 0}
    for seed in (*range(100), 152, 449, 506, 792, 1318, 5326):
        model = drawn(seed)
        answers = {solver: model.solve(solver=solver) for solver in solvers()}
        statuses = {answer.status for answer in answers.values()}
        assert len(statuses) == 1, (seed, {name: (a.status, a.message) for name, a in answers.items()})
        seen[statuses.pop()] += 1
        objectives = [a.objective for a in answers.values()]
        assert objectives == [None] * len(objectives) or max(objectives) - min(objectives) < 1e-5, seed
        sign = -1 if model.sense == "maximise" else 1
        for answer in answers.values():
            if answer.status == "optimal":
                assert sign * (answer.bound - answer.objective) <= 1e-9, seed
                assert answer.bound == pytest.approx(answer.objective, abs=1e-5), seed
            else:
                assert answer.bound is None, seed
    assert min(seen.values()) > 8


@pytest.mark.parametrize("solver", solvers())
@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (([-1, 0], [[1, -1]], [-INF], [1.5], [0, 0], [INF, INF], [1, 0]), "unbounded"),
        (([-1, 0], [[1, -1]], [-INF], [1.5], [0, 0], [INF, INF], [0, 0]), "unbounded"),
        (([-1], [], [], [], [0], [INF], [1]), "unbounded"),
        (([-1, 0], [[1, -1], [0, 2]], [0, 1], [INF, 1], [0, 0], [INF, 1], [1, 1]), "infeasible"),
        (([1], [[0]], [3], [4], [0], [1], [0]), "infeasible"),
        (([], [], [1], [2], [], [], []), "infeasible"),
        (([1], [[1]], [-INF], [5], [0.2], [0.8], [1]), "infeasible"),
        (([], [], [-1], [2], [], [], []), "optimal"),
    ],
)
def test_known_statuses(solver, arguments, status):
    answer = small(*arguments).solve(solver=solver)
    assert answer.status == status, answer.message


def test_bounds_that_contradict_themselves_are_a_conflict():
    model = small([1], [[1]], [-INF], [5], [0.2], [0.8], [1])
    assert model.conflicting_groups() == ["bounds"]
    assert "no whole number" in model.solve().message


def test_a_state_that_leads_out_of_the_arrays_is_refused():
    model = small([1, 1], [[1, 1]], [0], [1], [0, 0], [1, 1], [1, 1])
    state = list(model.__getstate__())
    for starts in ([0, 50_000_000, 2], [1, 1, 2], [0, -1, 2]):
        state[3] = np.asarray(starts, dtype=np.int32).tobytes()
        with pytest.raises(gs.InvalidInput, match="column_start"):
            milp.Model.__new__(milp.Model).__setstate__(tuple(state))


def test_highs_prints_nothing():
    pytest.importorskip("highspy")
    script = "from gpusched import milp; model = milp.serving_plan(*{!r}, form='rates'); "
    script = script.format(EXAMPLE) + "print(model.solve(solver='highs').status)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "optimal\n", "")


def test_highs_with_other_thread_counts():
    pytest.importorskip("highspy")
    model = milp.serving_plan(*EXAMPLE, form="rates")
    for threads in (1, 2, 1, 3):
        answer = model.solve(solver="highs", threads=threads)
        assert answer.status == "optimal" and answer.bound == pytest.approx(answer.objective), threads
    wrong = []

    def ask(threads):
        for _ in range(3):
            if model.solve(solver="highs", threads=threads).status != "optimal":
                wrong.append(threads)

    asking = [threading.Thread(target=ask, args=(1 + k % 2,)) for k in range(4)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    assert not wrong
    # Each thread has its own: what another asked for in between is nothing to this one.
    assert model.solve(solver="highs", threads=3).status == "optimal"
    other = threading.Thread(target=ask, args=(1,))
    other.start()
    other.join()
    assert not wrong and model.solve(solver="highs", threads=1).status == "optimal"
    within = []

    def told(*_):
        if not within:
            within.append(model.solve(solver="highs", threads=2).status)

    assert model.solve(solver="highs", threads=1, progress=told).status == "optimal" and within == ["optimal"]


def test_highs_after_other_code_used_it():
    highspy = pytest.importorskip("highspy")
    model = milp.serving_plan(*EXAMPLE, form="rates")
    for threads in (1, 2):
        highspy.Highs.resetGlobalScheduler(True)
        other = highspy.Highs()
        other.setOptionValue("output_flag", False)
        other.setOptionValue("threads", 3)
        other.addVar(0, 1)
        assert other.run() == highspy.HighsStatus.kOk
        assert model.solve(solver="highs", threads=threads).status == "optimal"


def test_a_search_that_did_not_begin_has_no_bound():
    pytest.importorskip("highspy")
    infeasible = milp.serving_plan(*EXAMPLE[:4], 1, form="rates")
    assert infeasible.solve(solver="highs").bound is None


def test_every_reader_solves_the_file_that_a_presolve_once_called_infeasible():
    highspy = pytest.importorskip("highspy")
    file = data("milp", "highs120_false_infeasible.mps")
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.readModel(str(file))
    lp = highs.getLp()
    matrix = np.zeros((lp.num_row_, lp.num_col_))
    start, index, value = lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_
    for j in range(lp.num_col_):
        for k in range(start[j], start[j + 1]):
            matrix[index[k], j] = value[k]
    whole = [int(kind == highspy.HighsVarType.kInteger) for kind in lp.integrality_]
    model = small(
        lp.col_cost_, matrix, list(lp.row_lower_), list(lp.row_upper_), lp.col_lower_, lp.col_upper_, whole
    )
    highs.run()
    best = highs.getInfo().objective_function_value
    for solver in solvers():
        for presolve in (True, False):
            answer = model.solve(solver=solver, presolve=presolve)
            assert answer.status == "optimal" and answer.objective == pytest.approx(best), (solver, presolve)


def split(columns=60, rows=4):
    """Equality knapsacks in several rows (Cornuejols and Dawande), which take very long to search."""
    rng = random.Random(5)
    matrix = [[rng.randrange(100) for _ in range(columns)] for _ in range(rows)]
    halves = [sum(row) // 2 for row in matrix]
    return small([rng.randrange(1, 10) for _ in range(columns)], matrix, halves, halves, [0] * columns,
        [1] * columns,
                 [1] * columns)  # fmt: skip


class Enough(Exception):
    pass


@pytest.mark.parametrize("solver", [name for name in solvers() if name != "scipy"])
def test_solvers_report_nodes_and_end_when_the_hook_raises(solver):
    seen = []

    def told(phase, done, total):
        seen.append((phase, done, total))
        if done > 0:
            raise Enough

    with pytest.raises(Enough):
        split().solve(solver=solver, time_limit=120, progress=told)
    assert {(phase, total) for phase, _, total in seen} == {("solving", 0)}
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)


def test_scipy_reports_only_its_start():
    seen = []
    model = milp.serving_plan(*EXAMPLE)
    found = model.solve(solver="scipy", progress=lambda *event: seen.append(event))
    assert found.status == "optimal"
    assert seen == [("solving", 0, 0)]


def test_a_user_defined_solver_reports_progress_and_can_be_stopped():
    kept = []

    def own(model, options):
        kept.append(options["go_on"])
        asked = [options["go_on"]()]
        until = time.monotonic() + 60
        while asked[-1] and time.monotonic() < until:
            asked.append(options["go_on"](7))
        return {"status": "optimal" if asked[-1] else "cancelled", "message": str(len(asked))}

    seen = []

    def told(phase, done, total):
        seen.append((phase, done, total))
        if done == 7:
            raise Enough

    with pytest.raises(Enough):
        split().solve(solver=own, progress=told)
    assert seen[0] == ("solving", 0, 0) and seen[-1] == ("solving", 7, 0)
    assert kept[0](1) is False  # the call is over
    with pytest.raises(TypeError):
        kept[0]("many")
