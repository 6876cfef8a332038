# SPDX-License-Identifier: Apache-2.0
"""Error messages for calls of the extension module with arguments that match no signature."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from .errors import InvalidType, repr_text

_EMPTY = inspect.Parameter.empty


def call_error(
    function: Any, message: str, arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> TypeError:
    """The error to raise in place of pybind11's TypeError with this message."""
    bind_error = None
    expected: dict[str, tuple[Any, list[str]]] = {}  # by parameter: its value, and the expected types
    signatures = list(_signatures(message))
    called = _called_name(function, signatures, arguments)
    if function.__name__ == "__init__":  # signatures of constructors omit `self`
        arguments = arguments[1:]
    for signature in signatures:
        try:
            bound = signature.bind(*arguments, **keywords).arguments
        except TypeError as error:
            bind_error = bind_error or f"{called}() {error}" + _nearest(str(error), signature)
            continue
        for name, value in bound.items():
            parameter = signature.parameters[name]
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                continue
            if _matches(value, parameter.annotation) is False:
                found = expected.setdefault(name, (value, []))[1]
                found += [text for text in _phrases(parameter.annotation) if text not in found]
    if expected:
        problems = (
            (_named_value(name, value), _expectation(value, texts))
            for name, (value, texts) in expected.items()
        )
        return InvalidType([f"{called}(): {shown}; expected {texts}" for shown, texts in problems])
    if bind_error is not None:
        return TypeError(bind_error)
    signatures_text = " or ".join(
        "("
        + ", ".join(f"{p.name}: {_either(_phrases(str(p.annotation)))}" for p in s.parameters.values())
        + ")"
        for s in signatures
    )
    named = (f"{name}={repr_text(value)}" for name, value in keywords.items())
    given = ", ".join([*map(repr_text, arguments), *named])
    return InvalidType(f"{called}(): ({given}); expected {signatures_text}")


def _called_name(function: Any, signatures: list[inspect.Signature], arguments: tuple[Any, ...]) -> str:
    """The function's name for messages; a method's name includes its class."""
    name: str = function.__name__
    if not arguments:
        return name
    if name == "__init__":
        return type(arguments[0]).__name__
    of_class = any(next(iter(signature.parameters), "") == "self" for signature in signatures)
    return f"{type(arguments[0]).__name__}.{name}" if of_class else name


def _named_value(name: str, value: object) -> str:
    """A value with the name of its parameter, if the parameter has one."""
    return repr_text(value) if re.fullmatch(r"arg\d+", name) else f"{name}: {repr_text(value)}"


def _nearest(error: str, signature: inspect.Signature) -> str:
    from ._core import did_you_mean

    unknown = re.search(r"unexpected keyword argument '(\w+)'", error)
    return did_you_mean(unknown.group(1), list(signature.parameters)) if unknown else ""


def _signatures(message: str) -> Iterator[inspect.Signature]:
    """The signatures in pybind11's message, with annotations as text."""
    for line in message.split("\n\nInvoked with: ")[0].splitlines():
        if match := re.match(r"\s+\d+\. [^(]*\((.*)", line):
            yield inspect.Signature(list(_parameters(match.group(1))))


def _parameters(text: str) -> Iterator[inspect.Parameter]:
    kind: Any = inspect.Parameter.POSITIONAL_OR_KEYWORD
    for part in _split(text, ","):
        declared, _, default = _halves(part, "=")
        name, _, annotation = _halves(declared, ":")
        if name == "*":
            kind = inspect.Parameter.KEYWORD_ONLY
        elif name.startswith("**"):
            yield inspect.Parameter(name[2:], inspect.Parameter.VAR_KEYWORD)
        elif name.startswith("*"):
            yield inspect.Parameter(name[1:], inspect.Parameter.VAR_POSITIONAL)
        elif name and name != "/":
            yield inspect.Parameter(name, kind, default=default or _EMPTY, annotation=annotation)


def _split(text: str, separator: str) -> list[str]:
    """Splits a text up to its closing bracket. Separators within brackets and strings do not count."""
    parts, depth, quote = [""], 0, ""
    for at, c in enumerate(text):
        if quote:
            quote = "" if c == quote and text[at - 1] != "\\" else quote
        elif c in "'\"":
            quote = c
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            if depth == 0:
                break
            depth -= 1
        elif c == separator and depth == 0:
            parts.append("")
            continue
        parts[-1] += c
    return [part.strip() for part in parts]


def _halves(text: str, separator: str) -> tuple[str, str, str]:
    first, *rest = _split(text, separator)
    return first, separator, f" {separator} ".join(rest)


def _expectation(value: object, texts: list[str]) -> str:
    if isinstance(value, str) and not _is_text(value):
        return "text, found half of a surrogate pair"
    return _either(texts)


def _is_text(value: str) -> bool:
    """False for text with half of a surrogate pair, which UTF-8 cannot encode."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


_ANYTHING = {"object", "typing.Any", "handle", ""}
_SIMPLE: dict[str, tuple[Callable[[Any], bool], str]] = {
    "str": (lambda v: isinstance(v, str) and _is_text(v), "a string"),
    "bytes": (lambda v: isinstance(v, bytes), "bytes"),
    "bool": (lambda v: isinstance(v, bool) or type(v).__name__ == "bool", "True or False"),
    "int": (lambda v: hasattr(v, "__index__"), "an integer"),
    "typing.SupportsInt": (lambda v: hasattr(v, "__index__"), "an integer"),
    "typing.SupportsIndex": (lambda v: hasattr(v, "__index__"), "an integer"),
    "float": (lambda v: hasattr(v, "__float__") or hasattr(v, "__index__"), "a number"),
    "typing.SupportsFloat": (lambda v: hasattr(v, "__float__"), "a number"),
    "None": (lambda v: v is None, "None"),
    "slice": (lambda v: isinstance(v, slice), "a slice"),
    "dict": (lambda v: isinstance(v, Mapping), "a dict"),
    "list": (lambda v: isinstance(v, Iterable) and not isinstance(v, (str, bytes, Mapping)), "a list"),
    "tuple": (lambda v: isinstance(v, Sequence) and not isinstance(v, (str, bytes)), "a tuple"),
    "set": (lambda v: isinstance(v, Iterable) and not isinstance(v, (str, bytes)), "a set"),
    "collections.abc.Mapping": (lambda v: isinstance(v, Mapping), "a dict"),
    "collections.abc.Sequence": (
        lambda v: isinstance(v, Sequence) and not isinstance(v, (str, bytes)),
        "a list",
    ),
    "collections.abc.Iterable": (
        lambda v: isinstance(v, Iterable) and not isinstance(v, (str, bytes)),
        "a list",
    ),
    "collections.abc.Callable": (callable, "a callable"),
}
_ELEMENTS = {"list": "", "set": "", "collections.abc.Sequence": "", "collections.abc.Iterable": ""}


def _matches(value: Any, annotation: str) -> bool | None:
    """Whether the value has this type; None if unknown."""
    alternatives = _split(annotation, "|")
    if len(alternatives) > 1:
        answers = [_matches(value, one) for one in alternatives]
        return True if True in answers else None if None in answers else False
    kind, _, inner = annotation.partition("[")
    if kind in _ANYTHING:
        return True
    if kind in _SIMPLE:
        if not _SIMPLE[kind][0](value):
            return False
        if kind in _ELEMENTS and isinstance(value, Sequence) and _split(inner, ","):
            element = _split(inner, ",")[0]
            if any(_matches(one, element) is False for one in value):
                return False
        return True
    named = _class(kind)
    return isinstance(value, named) if named is not None else None


def _class(name: str) -> type | None:
    module, _, attribute = name.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), attribute, None) if module else None
    except ImportError:
        return None
    return found if isinstance(found, type) else None


def _phrases(annotation: str) -> list[str]:
    """A type in words, one phrase for each alternative."""
    phrases: list[str] = []
    for one in _split(annotation, "|"):
        kind, _, inner = one.partition("[")
        if kind in _SIMPLE:
            text = _SIMPLE[kind][1]
            if kind in _ELEMENTS and (elements := _phrases(_split(inner, ",")[0])) and inner:
                text += f", each element {_either(elements)}"
        elif kind in _ANYTHING:
            text = "anything"
        else:
            text = kind.rpartition(".")[2]
            text = f"{'an' if text[:1] in 'AEIOU' else 'a'} {text}"
        if text not in phrases:
            phrases.append(text)
    return phrases


def _either(texts: list[str]) -> str:
    return " or ".join([", ".join(texts[:-1]), texts[-1]]) if len(texts) > 1 else "".join(texts)
