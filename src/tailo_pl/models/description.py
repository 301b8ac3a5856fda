"""Described: what an object was built with, as plain data, so that it can be built again."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Self

from tailo_pl.errors import UserError


class Described:
    """Remembers the arguments it is built with, defaults included; a subclass does nothing for it.

    Arguments must be plain data (numbers, text, lists, mappings), arrays, or described objects themselves.
    """

    _arguments: dict[str, Any]

    def __new__(cls, *positional: Any, **named: Any) -> Self:
        # Copies and pickles come here without arguments and bring `_arguments` along with the rest of their state.
        made = super().__new__(cls)
        made.__dict__["_arguments"] = _arguments(cls, positional, named)  # torch's __setattr__ is not ready yet
        return made

    def description(self) -> dict[str, Any]:
        """class_path and init_args, as a configuration names a class."""
        kind = type(self)
        return {"class_path": f"{kind.__module__}.{kind.__qualname__}", "init_args": dict(self._arguments)}


def _arguments(kind: type, positional: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    signature = inspect.signature(kind.__init__)  # type: ignore[misc]
    bound = signature.bind_partial(None, *positional, **named)
    bound.apply_defaults()
    arguments: dict[str, Any] = {}
    for name, value in list(bound.arguments.items())[1:]:  # the first is self
        match signature.parameters[name].kind:
            case inspect.Parameter.VAR_KEYWORD:
                arguments |= value
            case inspect.Parameter.VAR_POSITIONAL:
                if value:
                    raise UserError(f"{kind.__name__}: {value} given without names, expected each argument by its name")
            case _:
                arguments[name] = value
    return {name: _plain(f"{kind.__name__}.{name}", value) for name, value in arguments.items()}


def _plain(name: str, value: Any) -> Any:
    if value is None or (isinstance(value, bool | int | float | str) and type(value).__module__ == "builtins"):
        return value
    if isinstance(value, Described):
        return value.description()
    if hasattr(value, "tolist"):  # arrays, their numbers, tensors
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(name, one) for one in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _plain(f"{name}.{key}", one) for key, one in value.items()}
    raise UserError(f"{name}: a {type(value).__name__} given, expected numbers, text, lists or a described object")
