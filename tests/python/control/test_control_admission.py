# SPDX-License-Identifier: Apache-2.0
"""gpusched.control: places for a newcomer, and the queue of waiting newcomers."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import gpusched as gs
import pytest
from control_documents import config, window
from gpusched.control import AdmissionQueue, Newcomer, find_place
from messages import naming, refuses


def quiet(windows: int = 10, p99: float = 8.0, pcie: float = 0.0) -> gs.control.Controller:
    controller = gs.control.Controller(config())
    for _ in range(windows):
        controller.step(window(p99, pcie))
    return controller


def test_a_place_next_to_existing_instances() -> None:
    place = find_place(quiet(), Newcomer(profile="2g"))
    assert place is not None
    assert (place.profile, 0 <= place.slice <= 4, place.worst_ratio < 1) == ("2g", True, True)
    layout = gs.control.mig_layout("A100-40GB", [("2g", 0)] if place.gpu == 0 else [])
    assert layout.can_create(place.profile, place.slice)
    # T1's root is busy: the other one is better, and a tail at its target admits no newcomer.
    busy = find_place(quiet(pcie=6e9), Newcomer(profile="2g"))
    assert busy is not None and busy.gpu == 1
    assert find_place(quiet(p99=16.0), Newcomer(profile="2g")) is None


def test_newcomers_are_values() -> None:
    one = Newcomer(id=3, profile="2g", tau_ms=12.5, alone_ms=8.0)
    assert one == copy.copy(one) == copy.deepcopy(one) == pickle.loads(pickle.dumps(one))
    assert one != Newcomer(id=3)
    assert "id=3" in repr(one) and Newcomer().profile == "1g"
    answer = AdmissionQueue().offer(quiet(), one)
    assert pickle.loads(pickle.dumps(answer)) == answer


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"profile": "9g"}, "profile: '9g'"),
        ({"tau_ms": 15}, "alone_ms: 0; expected above 0"),
    ],
)
def test_newcomers_that_cannot_be(keywords: dict[str, Any], message: str) -> None:
    queue = AdmissionQueue()
    for call in (
        lambda: queue.offer(quiet(), Newcomer(**keywords)),
        lambda: find_place(quiet(), Newcomer(**keywords)),
    ):
        with refuses(message):
            call()
    assert len(queue) == 0


def test_bad_calls() -> None:
    with refuses("id 1.5"):
        Newcomer(id=1.5)  # type: ignore[arg-type]
    with refuses("profile: '\\ud800'; half of a surrogate pair"):
        Newcomer(profile="\ud800")
    with pytest.raises(gs.InvalidInput, match="document: '.ud800'"):
        gs.control.Controller("\ud800")
    with pytest.raises(TypeError, match=naming("unexpected keyword argument 'profil'")):
        Newcomer(profil="1g")  # type: ignore[call-arg]
    with pytest.raises(gs.InvalidInput, match="capacity"):
        AdmissionQueue(-1)
    fresh = gs.control.Controller(config())
    for call in (lambda: find_place(fresh, Newcomer()), lambda: AdmissionQueue().next(fresh)):
        with pytest.raises(gs.InvalidInput, match="no window yet"):
            call()
