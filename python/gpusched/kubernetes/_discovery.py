"""Where an API server serves a kind: not every server has every group, nor the same versions of it."""

from __future__ import annotations

from functools import cache
from typing import Any

from ..errors import BackendError
from ._api import Api
from ._kinds import Kind
from ._lists import require_served


class Discovery:
    """What the server serves, asked once for each group."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._group = cache(self._read_group)

    def version_of(self, kind: Kind) -> str | None:
        """The version in which the server serves a kind, the one that it prefers first; None where it does not.

        Raises Unavailable where the server of its group does not answer.
        """
        return next((version for version, plurals in self._group(kind.group) if kind.plural in plurals), None)

    def _read_group(self, group: str) -> list[tuple[str, set[str]]]:
        if not group:
            return [("v1", self._plurals("/api/v1"))]
        found = self._get(f"/apis/{group}")
        if found is None:
            return []
        preferred = (found.get("preferredVersion") or {}).get("version")
        versions = sorted((v["version"] for v in found.get("versions") or ()), key=lambda v: v != preferred)
        return [(version, self._plurals(f"/apis/{group}/{version}")) for version in versions]

    def _plurals(self, path: str) -> set[str]:
        found = self._get(path) or {}
        return {resource["name"] for resource in found.get("resources") or ()}

    def _get(self, path: str) -> dict[str, Any] | None:
        answer = self._api.get(path)
        if answer.status == 404:
            return None
        require_served(path, answer)
        if answer.status != 200:
            raise BackendError(f"{self._api.server}{path}: {answer.message}")
        return answer.body
