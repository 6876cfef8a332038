# SPDX-License-Identifier: Apache-2.0
"""Compares messages by what they name: place, field, value, expectation. Other words may change."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import gpusched as gs
import pytest
from gpusched import cli


def naming(words: str) -> str:
    """A pattern for `match=`: a line of the message has the words in this order, each a word of its own."""
    return ".*?".join(map(_whole, words.split()))


def refuses(words: str) -> AbstractContextManager[pytest.ExceptionInfo[gs.InvalidInput]]:
    """The block raises InvalidInput, and a line of the message has the words in this order."""
    return pytest.raises(gs.InvalidInput, match=naming(words))


def problems_in(call: Callable[..., object], *arguments: object, **keywords: object) -> list[str]:
    """The problems of the InvalidInput that the call raises."""
    with pytest.raises(gs.InvalidInput) as raised:
        call(*arguments, **keywords)
    return raised.value.problems


def mentions(text: str | Sequence[str], words: str) -> bool:
    """A line of the text, or of one of the texts, has the words in this order."""
    texts = [text] if isinstance(text, str) else text
    return any(re.search(naming(words), text) for text in texts)


def mention(texts: Sequence[str], words: Sequence[str]) -> bool:
    """There are as many texts as entries of `words`, and each has the words of its entry in this order."""
    return len(texts) == len(words) and all(map(mentions, texts, words))


def refused(arguments: Sequence[str], capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The problems of a command that the console script refuses before it prints anything."""
    assert cli.main(arguments) == 2
    printed = capsys.readouterr()
    lines = printed.err.splitlines()
    assert printed.out == "" and all(line.startswith("gpusched: ") for line in lines)
    return [line.removeprefix("gpusched: ") for line in lines]


def _whole(word: str) -> str:
    """A pattern of the word where it is no part of a longer word or number."""
    before = r"(?<![\w.-])" if word[0].isdigit() else r"(?<!\w)" if re.match(r"\w", word[0]) else ""
    after = r"(?!\w|[.,]\d)" if word[-1].isdigit() else r"(?!\w)" if re.match(r"\w", word[-1]) else ""
    return before + re.escape(word) + after
