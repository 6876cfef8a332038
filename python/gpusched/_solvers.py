# SPDX-License-Identifier: Apache-2.0
"""Solvers of mixed-integer programs from Python packages: HiGHS through highspy or scipy."""

from __future__ import annotations

import contextlib
import importlib.util
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from . import _core
from ._optional import require
from .errors import BackendError, InvalidInput

_NAMES = ("auto", "highs", "cbc", "scipy")


def _importable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def find(name: str, built_in: list[str]) -> Any:
    """A callable (model, options) -> dict, or the name of a built-in solver."""
    if name not in _NAMES:
        raise InvalidInput(
            f"solver: {name!r}; expected one of {', '.join(map(repr, _NAMES))} or a callable"
            + _core.did_you_mean(str(name), list(_NAMES))
        )
    if name == "cbc":
        return "cbc"
    if name in ("auto", "highs"):
        if _importable("highspy"):
            return highs
        if "highs" in built_in:
            return "highs"
        if name == "highs":
            require("highspy", "milp")
    if name == "auto" and built_in:
        return built_in[0]
    if _importable("scipy"):
        return scipy
    if name == "scipy":
        require("scipy", "milp")
    raise BackendError(
        "no MILP solver was found: install HiGHS (pip install highspy), or install CBC (Debian, Ubuntu: "
        "apt-get install coinor-libcbc-dev) and build gpusched again"
    )


class _Depth(threading.local):
    calls = 0


_depth = _Depth()


@contextlib.contextmanager
def _threads(count: int, highspy: Any) -> Iterator[int]:
    """Resets the threads of HiGHS before a call, and returns the number of threads to ask for.

    HiGHS keeps a pool of threads per calling thread and fails if a later call asks for another size. A call
    from the progress hook of another call uses the existing pool (0).
    """
    if _depth.calls == 0:
        highspy.Highs.resetGlobalScheduler(True)
    _depth.calls += 1
    try:
        yield count if _depth.calls == 1 else 0
    finally:
        _depth.calls -= 1


def _quiet(highspy: Any) -> Any:
    """A solver without output.

    Since HiGHS 1.16, the constructor of the first solver of a process prints a banner.
    """

    def enable_callbacks(solver: Any) -> None:  # the constructor calls this first
        solver.setOptionValue("output_flag", False)
        highspy.Highs.enableCallbacks(solver)

    return type("Highs", (highspy.Highs,), {"enableCallbacks": enable_callbacks})()


def highs(model: Any, options: dict[str, Any]) -> dict[str, Any]:
    """HiGHS through highspy."""
    highspy = require("highspy", "milp")
    with _threads(options["threads"], highspy) as threads:
        return _highs(highspy, model, {**options, "threads": threads})


def _watch(highspy: Any, solver: Any, go_on: Callable[[int], bool], mip: bool) -> None:
    """Reports the number of nodes (LP: iterations) to `go_on`, and stops the solver if it returns False."""
    last_call = 0.0

    def callback(_kind: Any, _message: str, out: Any, answer: Any, _data: Any) -> None:
        nonlocal last_call
        now = time.monotonic()
        if now - last_call < 0.01:  # simplex calls at every iteration
            return
        last_call = now
        if not go_on(max(0, out.mip_node_count if mip else out.simplex_iteration_count)):
            answer.user_interrupt = True

    kinds = highspy.cb.HighsCallbackType
    solver.setCallback(callback, None)
    for kind in (kinds.kCallbackMipInterrupt, kinds.kCallbackSimplexInterrupt):
        solver.startCallback(kind)


def _highs(highspy: Any, model: Any, options: dict[str, Any]) -> dict[str, Any]:
    rows, columns = model.shape
    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = rows, columns
    lp.sense_ = highspy.ObjSense.kMaximize if model.sense == "maximise" else highspy.ObjSense.kMinimize
    lp.offset_ = model.offset
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = model.c, model.col_lower, model.col_upper
    lp.row_lower_, lp.row_upper_ = model.row_lower, model.row_upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_ = model.column_start, model.row_index
    lp.a_matrix_.value_ = model.value
    mip = bool(model.integrality.any())
    if mip:
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[i] for i in model.integrality]
    solver = _quiet(highspy)
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("mip_rel_gap", options["mip_gap"])
    solver.setOptionValue("mip_abs_gap", 0.0)
    solver.setOptionValue("threads", options["threads"])
    solver.setOptionValue("parallel", "on" if options["threads"] > 1 else "off")
    solver.setOptionValue("random_seed", options["seed"])
    solver.setOptionValue("presolve", "on" if options["presolve"] else "off")
    if options["time_limit"] is not None:
        solver.setOptionValue("time_limit", float(options["time_limit"]))
    if solver.passModel(lp) == highspy.HighsStatus.kError:
        return {"status": "failed", "message": "HiGHS rejects the model"}
    if options["start"] is not None:
        start = highspy.HighsSolution()
        start.col_value = list(options["start"])
        solver.setSolution(start)
    _watch(highspy, solver, options["go_on"], mip)
    solver.run()
    status = solver.getModelStatus()
    kinds = highspy.HighsModelStatus
    if status == kinds.kUnboundedOrInfeasible:  # presolve does not distinguish them; the solver does
        solver.setOptionValue("presolve", "off")
        solver.run()
        status = solver.getModelStatus()
    info = solver.getInfo()
    answer: dict[str, Any] = {
        "status": {
            kinds.kOptimal: "optimal",
            kinds.kModelEmpty: "optimal",
            kinds.kInfeasible: "infeasible",
            kinds.kUnbounded: "unbounded",
            kinds.kTimeLimit: "time_limit",
            kinds.kInterrupt: "cancelled",
        }.get(status, "failed")
    }
    if answer["status"] == "failed":
        answer["message"] = "HiGHS stopped: " + solver.modelStatusToString(status)
    feasible = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    if feasible and answer["status"] not in ("infeasible", "unbounded"):
        answer["x"] = list(solver.getSolution().col_value)
    if mip and answer["status"] in ("optimal", "time_limit", "cancelled"):
        answer["bound"] = info.mip_dual_bound  # 0 if the search did not begin
    elif not mip and answer["status"] == "optimal":
        answer["bound"] = info.objective_function_value
    return answer


def scipy(model: Any, options: dict[str, Any]) -> dict[str, Any]:
    """HiGHS through scipy.optimize.milp: without start, threads, seed, progress and cancellation."""
    optimize = require("scipy.optimize", "milp")
    sign = -1.0 if model.sense == "maximise" else 1.0
    rows, columns = model.shape
    if columns == 0:
        wrong = ((model.row_lower > 0) | (model.row_upper < 0)).any()
        return {"status": "infeasible"} if wrong else {"status": "optimal", "bound": model.offset}
    settings = {"mip_rel_gap": options["mip_gap"], "presolve": options["presolve"]}
    if options["time_limit"] is not None:
        settings["time_limit"] = float(options["time_limit"])
    result = optimize.milp(
        sign * model.c,
        integrality=model.integrality,
        bounds=optimize.Bounds(model.col_lower, model.col_upper),
        constraints=optimize.LinearConstraint(model.A, model.row_lower, model.row_upper) if rows else None,
        options=settings,
    )
    status = {0: "optimal", 1: "time_limit", 2: "infeasible", 3: "unbounded"}.get(result.status, "failed")
    answer: dict[str, Any] = {
        "status": status,
        "message": "" if result.status in (0, 2, 3) else str(result.message),
    }
    if result.x is not None and status in ("optimal", "time_limit"):
        answer["x"] = list(result.x)
    bound = getattr(result, "mip_dual_bound", None)
    if bound is None and status == "optimal":
        bound = result.fun
    if bound is not None:
        answer["bound"] = sign * bound + model.offset
    return answer
