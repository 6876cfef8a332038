# SPDX-License-Identifier: Apache-2.0
"""Figures of demand by kind: 2 (job types), 3 (model types), 4 right (GPUs), 5 (a week) and 6 (days)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from .._views.tables import Kind, Table
from .batch import MICRO, Batch, Coded, Truths, Wholes
from .release import Hour
from .schema import GPU_MODELS, JOB_TYPES, MODEL_TYPES, display_model
from .server_hour import CLASSES, ServerHour, total

DAILY_MODELS = ("A10", "A100", "H20", "L20", "XPU-A")
"""GPU models of Figure 6, with the table's names."""


def share(part: float, whole: float) -> float:
    return 100 * part / whole if whole else 0.0


def by_model(batch: Batch) -> Wholes:
    """The position of each row's GPU model in `GPU_MODELS`; -1 for others."""
    column = batch.text("gpu_spec_public")
    return Coded(column.codes, [display_model(text) for text in column.texts]).among(GPU_MODELS)


class Pods:
    """A figure that needs only the pods, not the sums of an hour."""

    def close(self, sums: ServerHour) -> None:
        pass


class JobTypes(Pods):
    """Figure 2: GPU-hours of pods with an accelerator by job type, and the shares of HP and LP."""

    columns = ("priority_class", "job_type_public", "gpu_mem_request", "used_gpu_hours")

    def __init__(self) -> None:
        self.sums: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])

    def add(self, hour: Hour, batch: Batch) -> None:
        types = batch.text("job_type_public")
        counted, used = (
            (batch.micro("gpu_mem_request") > 0) & (types.codes >= 0),
            batch.micro("used_gpu_hours"),
        )
        class_ = batch.among("priority_class", CLASSES)
        for column, of in enumerate((counted, counted & (class_ == 0), counted & (class_ == 1))):
            for name, hours in zip(types.texts, total(types.codes[of], used[of], len(types.texts)).tolist()):
                self.sums[name][column] += hours

    def tables(self) -> dict[str, Table]:
        known = sorted((name, sums) for name, sums in self.sums.items() if name != "unknown" and sums[0])
        whole = sum(sums[0] for _, sums in known)
        return {
            "fig2": Table(
                {
                    "job_type": "text",
                    **dict.fromkeys(("gpu_hours", "share_pct", "hp_pct", "lp_pct"), "number"),
                },
                [
                    (name, a / MICRO, share(a, whole), share(hp, hp + lp), share(lp, hp + lp))
                    for name, (a, hp, lp) in known
                ],
            )
        }


class ModelTypes(Pods):
    """Figure 3: GPU-hours by model type, for each job type (left) and GPU model (right)."""

    columns = ("gpu_spec_public", "job_type_public", "model_type_public", "gpu_request", "used_gpu_hours")

    def __init__(self) -> None:
        self.jobs = np.zeros((len(JOB_TYPES), len(MODEL_TYPES) + 1), np.int64)  # last column: all known types
        self.gpus = np.zeros((len(GPU_MODELS), len(MODEL_TYPES) + 1), np.int64)

    def add(self, hour: Hour, batch: Batch) -> None:
        models = batch.text("model_type_public")
        type_, unknown = models.among(MODEL_TYPES), models.among(("unknown",)) == 0
        named = (models.codes >= 0) & (batch.text("job_type_public").codes >= 0)
        counted, used = (batch.micro("gpu_request") > 0) & ~unknown & named, batch.micro("used_gpu_hours")
        for sums, group in (
            (self.jobs, batch.among("job_type_public", JOB_TYPES)),
            (self.gpus, by_model(batch)),
        ):
            width = sums.shape[1]
            for column, of in (
                (type_, type_ >= 0),
                (np.full(batch.size, width - 1), np.ones(batch.size, bool)),
            ):
                of = of & counted & (group >= 0)
                sums += total(group[of] * width + column[of], used[of], sums.size).reshape(sums.shape)

    def tables(self) -> dict[str, Table]:
        def table(first: str, names: Iterable[str], sums: Wholes) -> Table:
            rows = [
                (name, model, hours / MICRO, share(hours, row[-1]))
                for name, row in zip(names, sums.tolist())
                for model, hours in zip(MODEL_TYPES, row)
            ]
            return Table(
                {first: "text", "model_type": "text", "gpu_hours": "number", "share_pct": "number"}, rows
            )

        return {
            "fig3_left": table("job_type", JOB_TYPES, self.jobs),
            "fig3_right": table("gpu_model", GPU_MODELS, self.gpus),
        }


class Classes(Pods):
    """Figure 4, right: hours of HP and LP pods by GPU model."""

    columns = ("gpu_spec_public", "priority_class", "gpu_request")

    def __init__(self) -> None:
        self.pods = np.zeros((len(GPU_MODELS), len(CLASSES)), np.int64)

    def add(self, hour: Hour, batch: Batch) -> None:
        model, class_ = by_model(batch), batch.among("priority_class", CLASSES)
        of = (batch.micro("gpu_request") > 0) & (model >= 0) & (class_ >= 0)
        at = model[of] * len(CLASSES) + class_[of]
        self.pods += np.bincount(at, minlength=self.pods.size).reshape(self.pods.shape)

    def tables(self) -> dict[str, Table]:
        columns: dict[str, Kind] = {
            "gpu_model": "text",
            **dict.fromkeys(("hp_pod_hours", "lp_pod_hours"), "whole"),
            **dict.fromkeys(("hp_pct", "lp_pct"), "number"),
        }
        pods = zip(GPU_MODELS, self.pods.tolist())
        rows = [(name, hp, lp, share(hp, hp + lp), share(lp, hp + lp)) for name, (hp, lp) in pods]
        return {"fig4_right": Table(columns, rows)}


def counts_as_ready(batch: Batch) -> Truths:
    """Pods that became ready, request GPUs and have a job type of the figures."""
    types = batch.among("job_type_public", JOB_TYPES)
    return (batch.micro("gpu_request") > 0) & batch.truth("ready_status") & (types >= 0)


def sm_share(batch: Batch) -> np.ndarray:
    """SM utilisation per requested GPU, 0 to 1; NaN without a measurement or a request for GPUs."""
    asked = batch.micro("gpu_request") / MICRO
    return batch.number("avg_gpu_sm_util") / np.where(asked > 0, 100 * asked, np.nan)


class Week(Pods):
    """Figure 5: GPUs that active HP pods request, and their SM utilisation, by hour and job type."""

    columns = (
        *("state_public", "priority_class", "job_type_public", "ready_status"),
        *("gpu_request", "avg_gpu_sm_util"),
    )

    def __init__(self) -> None:
        self.sums: dict[Hour, np.ndarray] = {}

    def add(self, hour: Hour, batch: Batch) -> None:
        types, sm = batch.among("job_type_public", JOB_TYPES), sm_share(batch)
        active = (batch.among("priority_class", CLASSES) == 0) & (
            batch.among("state_public", ("Standby",)) != 0
        )
        of = counts_as_ready(batch) & active
        measured = of & ~np.isnan(sm)
        size = len(JOB_TYPES)
        added = [
            np.bincount(types[of], minlength=size),
            total(types[of], batch.micro("gpu_request")[of], size),
            np.bincount(types[measured], minlength=size),
            np.bincount(types[measured], weights=sm[measured], minlength=size),
        ]
        self.sums[hour] = self.sums.get(hour, 0) + np.array(added, float)

    def tables(self) -> dict[str, Table]:
        rows = [
            (*hour, name, gpus / MICRO, sm / measured if measured else None, int(measured))
            for hour, sums in sorted(self.sums.items())
            for name, (pods, gpus, measured, sm) in zip(JOB_TYPES, sums.T.tolist())
            if pods
        ]
        columns: dict[str, Kind] = {
            "day": "whole",
            "hour": "whole",
            "job_type": "text",
            "gpus": "number",
            "sm_utilisation": "number",
            "pods": "whole",
        }
        return {"fig5": Table(columns, rows)}


class Days(Pods):
    """Figure 6: GPU-hours of pods with an accelerator, by GPU model and day."""

    columns = ("gpu_spec_public", "priority_class", "gpu_mem_request", "used_gpu_hours")

    def __init__(self) -> None:
        self.sums: dict[tuple[str, int], Wholes] = {}

    def add(self, hour: Hour, batch: Batch) -> None:
        model, class_ = batch.among("gpu_spec_public", DAILY_MODELS), batch.among("priority_class", CLASSES)
        counted, used = (batch.micro("gpu_mem_request") > 0) & (model >= 0), batch.micro("used_gpu_hours")
        pods = np.bincount(model[counted], minlength=len(DAILY_MODELS))
        added = [
            total(model[of], used[of], len(DAILY_MODELS))
            for of in (counted & (class_ == 0), counted & (class_ == 1), counted)
        ]
        for name, count, sums in zip(DAILY_MODELS, pods, np.array(added).T):
            if count:
                key = (name, hour[0])
                self.sums[key] = self.sums.get(key, np.zeros(3, np.int64)) + sums

    def tables(self) -> dict[str, Table]:
        hours = ("hp_gpu_hours", "lp_gpu_hours", "gpu_hours")
        columns: dict[str, Kind] = {"gpu_model": "text", "day": "whole", **dict.fromkeys(hours, "number")}
        return {
            "fig6": Table(
                columns, [(*key, *(sums / MICRO).tolist()) for key, sums in sorted(self.sums.items())]
            )
        }
