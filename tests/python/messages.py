"""Compares messages by what they name (fields, values, ranges), not by their wording."""

from __future__ import annotations

import re
from collections.abc import Sequence


def naming(words: str) -> str:
    """A pattern for `match=`: the message contains every word, in any order, each as a word of its own."""
    return "(?s)" + "".join(f"(?=.*{_whole(word)})" for word in words.split())


def mentions(text: str | Sequence[str], words: str) -> bool:
    """The text, or one of the texts, contains every word."""
    texts = [text] if isinstance(text, str) else text
    return any(re.search(naming(words), text) for text in texts)


def mention(texts: Sequence[str], words: Sequence[str]) -> bool:
    """There are as many texts as entries of `words`, and each contains the words of its entry."""
    return len(texts) == len(words) and all(map(mentions, texts, words))


def _whole(word: str) -> str:
    before = r"(?<!\w)" if re.match(r"\w", word[0]) else ""
    after = r"(?!\w)" if re.match(r"\w", word[-1]) else ""
    return before + re.escape(word) + after
