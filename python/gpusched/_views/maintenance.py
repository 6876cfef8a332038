# SPDX-License-Identifier: Apache-2.0
"""Blockers, drain orders and what-if answers as text, pandas tables and HTML."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .frames import frame
from .html import _table, _text, _titled
from .tables import counted, format_table, listed

if TYPE_CHECKING:
    import pandas as pd

    from .. import consolidation

SHOWN = 20
"""Rows of a list in a text; a last line counts the others."""
NAMED = 4
"""Names in one line."""
ALL_NAMED = 50
"""A drain order of at most this many nodes is shown in full."""

KIND_TEXTS = {
    "budget": "disruption budget {} allows nothing to be down",
    "no_disruption": "job {} allows no member to be down",
    "no_controller": "{} never moves: {reason}",
    "never_moves": "{} never moves: {reason}",
    "bound_to_node": "{} can run only on its node: {reason}",
    "locked": "{} is {reason}",
    "cpu_local": "{} is bound to its cores",
    "standby": "{} lends its resources",
    "core_members": "job {} needs its members",
    "gang_domain": "gang {} must stay within its network domain",
}
"""Why the tasks of a blocker stay."""


def names(found: Sequence[str], most: int = NAMED) -> str:
    return listed(found, most)


def lines(found: Sequence[str], most: int = SHOWN) -> list[str]:
    more = [f"  - and {len(found) - most:,} more"] if len(found) > most else []
    return [f"  - {line}" for line in found[:most]] + more


def stopped(reason: Any) -> list[str]:
    return [] if reason == "completed" else [f"stopped early: {reason}"]


def blocker_text(blocker: consolidation.FixedTasks) -> str:
    text = KIND_TEXTS[blocker.kind].format(blocker.name, reason=blocker.reason)
    return text if blocker.tasks == [blocker.name] else f"{text} ({counted(len(blocker.tasks), 'task')})"


def freed_text(ranked: consolidation.RankedBlocker) -> str:
    """The nodes that only the plan without the blocker frees, and how many it does not free instead."""
    others = len(ranked.freed) - ranked.nodes
    return names(ranked.freed) + (f", instead of {others:,} other" if others > 0 else "") + "s" * (others > 1)


def blocker_rows(ranking: consolidation.BlockerRanking) -> list[tuple[Any, ...]]:
    return [
        (" and ".join(map(blocker_text, ranked.blockers)), ranked.nodes, ranked.gpus, freed_text(ranked))
        for ranked in ranking.ranked
    ]


def head(ranking: consolidation.BlockerRanking) -> str:
    """What a plan frees with all blockers. `consolidate` may free more with another preset."""
    freed = f"{counted(ranking.vacated_nodes, 'node')} with {counted(ranking.vacated_gpus, 'GPU')}"
    return f"a plan with preset {ranking.preset} frees {freed}"


def blockers_text(ranking: consolidation.BlockerRanking) -> str:
    found = [
        f"{head(ranking)}; "
        f"{counted(ranking.found, 'blocker')} {'holds' if ranking.found == 1 else 'hold'} "
        f"{counted(ranking.nodes_held, 'node')} with {counted(ranking.gpus_held, 'GPU')}"
    ]
    rows = blocker_rows(ranking)
    if rows:
        kind = "pair of blockers" if ranking.pairs else "blocker"
        columns = (f"without this {kind}", "more nodes", "more GPUs", "nodes")
        found.append(format_table(columns, rows[:SHOWN]))
        if len(rows) > SHOWN:
            found.append(f"and {len(rows) - SHOWN:,} more")
    complete = ranking.stop_reason == "completed"
    removable = ranking.found - ranking.not_removable
    every_pair = math.comb(removable, 2)
    gains = (
        ranking.gpus_without_all > ranking.vacated_gpus or ranking.nodes_without_all > ranking.vacated_nodes
    )
    hopeless = complete and ranking.found > 0 and not rows and not gains
    all_tried = hopeless or ranking.planned >= removable
    if ranking.others:
        single = "no single blocker helps" if all_tried else "no blocker that was tried helps"
        pair = ", and no pair" + ("" if ranking.pairs_planned >= every_pair else " that was tried")
        found.append(single + (pair if ranking.pairs and not rows else ""))
        found.append("those that hold the most nodes:")
        most = [(blocker_text(blocker), blocker.nodes) for blocker in ranking.others]
        found.append(format_table(("blocker", "nodes held"), most))
        if ranking.found > len(most):
            found.append(f"and {ranking.found - len(most):,} more")
    if ranking.not_removable:
        found.append(
            f"{counted(ranking.not_removable, 'blocker')} cannot be removed: other tasks use what it lends"
        )
    if hopeless:
        found.append("removing blockers does not help: without all of them, a plan frees no more")
    if ranking.gpus_without_all > ranking.vacated_gpus:
        found.append(
            f"without any blocker, a plan frees {counted(ranking.nodes_without_all, 'node')} with "
            f"{counted(ranking.gpus_without_all, 'GPU')}"
        )
    if not all_tried:
        limit = f" (max_plans: {ranking.planned})" if complete else ""
        found.append(
            f"{ranking.planned:,} of {removable:,} blockers were tried{limit}, those that alone hold most"
        )
    elif ranking.pairs and ranking.pairs_planned < every_pair:
        found.append(
            f"{ranking.pairs_planned:,} of {every_pair:,} pairs were tried, those that alone hold most"
        )
    return "\n".join(found + stopped(ranking.stop_reason))


def blockers_to_pandas(ranking: consolidation.BlockerRanking) -> pd.DataFrame:
    rows = [
        (
            [blocker.kind for blocker in ranked.blockers],
            [blocker.name for blocker in ranked.blockers],
            [blocker.reason for blocker in ranked.blockers],
            ranked.nodes,
            ranked.gpus,
            sorted({task for blocker in ranked.blockers for task in blocker.tasks}),
            ranked.freed,
        )
        for ranked in ranking.ranked
    ]
    kinds = {"kind": "texts", "name": "texts", "reason": "texts", "nodes": "whole", "gpus": "whole"}
    return frame({**kinds, "tasks": "texts", "freed": "texts"}, rows)


def blockers_html(ranking: consolidation.BlockerRanking) -> str:
    rows = blocker_rows(ranking)
    return _titled("Blockers", head(ranking)) + (
        _table(("without", "nodes", "gpus", "freed"), rows) if rows else ""
    )


def drain_head(order: consolidation.DrainOrder) -> str:
    drained = sum(len(batch.nodes) for batch in order.batches)
    text = f"{counted(drained, 'node')} in {counted(len(order.batches), 'batch', 'batches')}"
    if not order.batches:
        return text
    least = order.batches_at_least
    fewer = (
        "fewer batches" if least == len(order.batches) else f"fewer than {counted(least, 'batch', 'batches')}"
    )
    return f"{text} (proven: no order drains these nodes in {fewer})"


def drain_text(order: consolidation.DrainOrder) -> str:
    found = [
        drain_head(order),
        f"{counted(order.moves, 'move')} of {counted(order.moved_tasks, 'task')}; "
        f"{counted(order.moved_twice, 'task')} in more than one batch",
    ]
    if again := order.jobs_restarted_twice:
        found.append(
            f"{counted(again, 'job')} {'restarts' if again == 1 else 'restart'} in more than one batch"
        )
    in_full = sum(len(batch.nodes) for batch in order.batches) <= ALL_NAMED
    found += lines(
        [
            f"batch {number}: {names(batch.nodes, ALL_NAMED if in_full else NAMED)}; "
            f"{counted(len(batch.plan.moves), 'move')} in {counted(batch.plan.waves, 'wave')}"
            + (f"; restarted again: {names(batch.restarted_again)}" if batch.restarted_again else "")
            for number, batch in enumerate(order.batches, 1)
        ],
        ALL_NAMED if in_full else SHOWN,
    )
    if order.left:
        left = counted(len(order.left), "node")
        if order.stop_reason == "completed":
            found.append(f"{left} cannot be drained:")
        else:
            found.append(f"{left} {'is' if len(order.left) == 1 else 'are'} left:")
        found += lines([str(why).rstrip() for why in order.left])
    return "\n".join(found + stopped(order.stop_reason))


def drain_rows(order: consolidation.DrainOrder) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = [
        (number, node, len(batch.plan.moves), batch.restarted_again, [], None)
        for number, batch in enumerate(order.batches, 1)
        for node in batch.nodes
    ]
    left = ((why.node, [blocker.task for blocker in why.blockers], why.text) for why in order.left)
    return rows + [(-1, node, 0, [], blockers, text) for node, blockers, text in left]


def drain_csv_rows(order: consolidation.DrainOrder) -> list[tuple[Any, ...]]:
    """A head, and each node with its batch and whether tasks leave it then; -1 for a node without a batch."""
    leave = {(number, move.from_) for number, b in enumerate(order.batches, 1) for move in b.plan.moves}
    rows = [(row[0], row[1], "yes" if row[:2] in leave else "no") for row in drain_rows(order)]
    return [("batch", "node", "tasks_move"), *rows]


def drain_to_pandas(order: consolidation.DrainOrder) -> pd.DataFrame:
    kinds = {"batch": "whole", "node": "text", "moves_of_batch": "whole", "restarted_again": "texts"}
    return frame({**kinds, "blockers": "texts", "text": "text"}, drain_rows(order))


def drain_html(order: consolidation.DrainOrder) -> str:
    rows = [
        (number, names(batch.nodes), len(batch.plan.moves), batch.plan.waves, names(batch.restarted_again))
        for number, batch in enumerate(order.batches, 1)
    ]
    left = "".join(_text(str(why)) for why in order.left[:SHOWN])
    table = _table(("batch", "nodes", "moves", "waves", "jobs restarted again"), rows)
    return _titled("Drain order", drain_head(order)) + table + left


STATE_TEXTS = {
    "now": "as it is",
    "changed": "with the change",
    "consolidated": "after a consolidation",
}


def state_rows(answer: consolidation.WhatIf) -> list[tuple[Any, ...]]:
    """The states with the jobs that wait before the change; those of removed nodes are counted apart."""
    waiting = [job.outcomes for job in answer.jobs if not job.displaced]
    return [
        (
            STATE_TEXTS[one.state],
            sum(outcomes[at].starts for outcomes in waiting),
            sum(outcomes[at].alone for outcomes in waiting),
            len(waiting),
            *(one.idle_gpus, one.empty_nodes),
        )
        for at, one in enumerate(answer.states)
    ]


STATE_COLUMNS = ("cluster", "start in queue order", "start if alone", "of jobs", "idle GPUs", "empty nodes")


def fragmentation_rows(answer: consolidation.WhatIf) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Idle GPUs that each request cannot use, one column per state."""
    columns = ("request", *(STATE_TEXTS[one.state] for one in answer.states))
    rows = []
    for rows_of_shape in zip(*(one.fragmentation for one in answer.states)):
        first = rows_of_shape[0]
        unusable = (row.fractional + row.stranded + row.insufficient_cpu for row in rows_of_shape)
        cores = counted(first.cpu_cores, "core")
        rows.append((f"{counted(first.gpus, 'GPU')}, {cores}", *unusable))
    return columns, rows


def what_if_head(answer: consolidation.WhatIf) -> str:
    now, *others = state_rows(answer)
    last = others[0] if len(answer.states) > 1 and answer.states[1].state == "changed" else now
    least = "" if answer.stop_reason == "completed" else "at least "
    text = f"{least}{last[1]:,} of {counted(last[3], 'waiting job')} would start {last[0]}"
    return text if last is now else f"{text}; {least}{now[1]:,} {now[0]}"


def what_if_text(answer: consolidation.WhatIf) -> str:
    found = [what_if_head(answer), format_table(STATE_COLUMNS, state_rows(answer))]
    moves = answer.states[-1].moves
    if moves:
        found.append(f"the consolidation takes {counted(moves, 'move')}")
    columns, rows = fragmentation_rows(answer)
    found += ["idle GPUs that a request cannot use", format_table(columns, rows)]
    if now := [job.name for job in answer.jobs if job.outcomes[0].starts]:
        found.append(f"starts {STATE_TEXTS['now']}: {names(now, SHOWN)}")
    states = range(len(answer.states))
    for state in states[1:]:
        pairs = [(job, job.outcomes[state - 1], job.outcomes[state]) for job in answer.jobs]
        new = [job.name for job, old, one in pairs if one.starts and not old.starts and not job.displaced]
        lost = [
            job.name for job, old, one in pairs if old.starts and not one.starts and one.reason != "not tried"
        ]
        where = STATE_TEXTS[answer.states[state].state]
        if new:
            found.append(f"starts only {where}: {names(new, SHOWN)}")
        if lost:
            found.append(f"would no longer start {where}: {names(lost, SHOWN)}")
    displaced = [job for job in answer.jobs if job.displaced]
    if displaced:
        placed = sum(job.outcomes[1].starts for job in displaced)
        jobs = counted(len(displaced), "job")
        found.append(f"{placed:,} of {jobs} of removed nodes would find a new place {STATE_TEXTS['changed']}")
    waiting = [
        (job.name, f"places for {last.pods:,} of {job.pods:,}; " * bool(last.pods) + last.reason)
        for job in answer.jobs
        if not (last := job.outcomes[-1]).starts
    ]
    if waiting:
        state = STATE_TEXTS[answer.states[-1].state]
        found.append(f"{counted(len(waiting), 'job')} would wait {state}:")
        found += lines([f"{name}: {reason}" for name, reason in waiting])
    if answer.lost:
        found.append(f"lost with the removed nodes: {names(answer.lost, SHOWN)}")
    return "\n".join(found + stopped(answer.stop_reason))


def what_if_to_pandas(answer: consolidation.WhatIf) -> pd.DataFrame:
    rows = [
        (
            *(job.name, one.state, job.priority, job.created, job.pods, job.gpus, job.displaced),
            *(outcome.pods, outcome.starts, outcome.alone, outcome.reason),
        )
        for job in answer.jobs
        for one, outcome in zip(answer.states, job.outcomes)
    ]
    kinds = {"job": "text", "state": "text", "priority": "whole", "created": "whole", "pods": "whole"}
    kinds |= {"gpus": "number", "displaced": "any", "pods_placed": "whole", "starts": "any", "alone": "any"}
    return frame({**kinds, "reason": "text"}, rows)


def what_if_html(answer: consolidation.WhatIf) -> str:
    tables = _table(STATE_COLUMNS, state_rows(answer)) + _table(*fragmentation_rows(answer))
    return _titled("What if", what_if_head(answer)) + tables
