"""Overrides as they are typed: looked at before Hydra composes anything, and written so that it reads them.

Most mistakes are a wrong name. They are found here, without a library that takes long to import.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tailo_pl.config.choices import choice_file, choices, folders, groups
from tailo_pl.errors import UserError, one_line

if TYPE_CHECKING:
    from omegaconf import DictConfig

_OPTIONAL = ("experiment",)  # groups of which nothing need be chosen
_PLAIN = re.compile(r"[\w/\\+.$%*@?|: \-]*", re.ASCII)  # letters of a value that Hydra reads without quotes
_CALL = re.compile(r"[a-z_]+\(.*\)")  # range(1,4), choice(a,b): Hydra's own functions


def readable(overrides: Sequence[str], *, sweep: bool = False) -> list[str]:
    """The overrides as Hydra reads them: values with letters it does not know are quoted.

    Args:
        overrides: as typed.
        sweep: whether commas separate the values of a sweep.

    Raises:
        UserError: for a word without `=`, an unknown group or first key, and a choice that does not exist.
    """
    return [_readable(override, sweep) for override in overrides]


def _readable(override: str, sweep: bool) -> str:
    if override.startswith(("-", "hydra.", "hydra/", "~")):
        return override
    key, equals, value = override.partition("=")
    bare = key.lstrip("+")
    if not equals or not bare:
        raise UserError(_no_value(override))
    if "@" in bare:  # a group put elsewhere: Hydra's own business
        return override
    if bare in groups():
        _require_choice(bare, value, sweep)
    elif bare == key and bare.split(".")[0] not in (names := [*groups(), *_top_keys()]):
        raise UserError(f"{bare}: unknown key{_near(bare, names) or _inside(bare)}; `tailo train --help` lists them")
    if not sweep and "," in value and _PLAIN.fullmatch(value.replace(",", "")):
        raise UserError(f"{bare}: {value!r} given, expected one value (-m runs each of them, [a,b] is a list)")
    return f"{key}={_quoted(_whole_numbers(value), sweep)}"


def _no_value(word: str) -> str:
    """What is said of a word that is no key=value: most likely a choice without its group."""
    offered = [f"{group}={word}" for group in groups() if word in choices(group)]
    if not offered:
        close = {name: f"{group}={name}" for group in groups() for name in choices(group)}
        offered = [close[name] for name in difflib.get_close_matches(word, close, n=1)]
    hint = f" (did you mean {' or '.join(offered)}?)" if offered else ""
    return f"train: {one_line(repr(word))} given, expected key=value{hint}"


def _require_choice(group: str, value: str, sweep: bool) -> None:
    if _CALL.fullmatch(value) or value[:1] in ("[", "'", '"') or (group in _OPTIONAL and value == "null"):
        return
    there = choices(group)
    for name in value.split(",") if sweep else [value]:
        if name.strip() not in there:
            many = not sweep and {one.strip() for one in value.split(",")} <= set(there)
            hint = " (-m runs each of them)" if many else _near(name, there)
            raise UserError(f"{group}: {one_line(repr(name))} given, expected one of {', '.join(there)}{hint}")


def _top_keys() -> list[str]:
    """The keys that belong to no group, as the first file of the configuration has them."""
    text = (folders()[0] / "train.yaml").read_text()
    return [name for name in re.findall(r"^(\w+):", text, re.MULTILINE) if name != "defaults"]


def _whole_numbers(value: str) -> str:
    """A number such as 1e4 as 10000: what counts steps takes whole numbers, and people write them so."""
    return re.sub(r"(?<![\w.+-])\d+(\.\d+)?[eE]\+?\d{1,2}(?![\w.+-])", _whole, value)


def _whole(found: re.Match[str]) -> str:
    number = float(found[0])
    return str(int(number)) if number.is_integer() and number < 1e15 else found[0]


def _quoted(value: str, sweep: bool) -> str:
    """A value in quotes where Hydra would not read it without: letters of other languages, `=`, `&`, …"""
    if _CALL.fullmatch(value) or (value[:1] not in ("[", "{") and _PLAIN.fullmatch(value)):
        return value
    if value[:1] in ("'", '"', "{") or "${" in value:
        return value
    if value[:1] == "[" and value[-1:] == "]":
        return f"[{_each_quoted(value[1:-1])}]"
    return _each_quoted(value) if sweep else in_quotes(value)


def _each_quoted(values: str) -> str:
    if set("'\"[{(") & set(values):  # quoted or nested already
        return values
    return ",".join(one if _PLAIN.fullmatch(one) else in_quotes(one.strip()) for one in values.split(","))


def in_quotes(value: str) -> str:
    """A text as Hydra reads it whatever its letters are."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _near(name: str, there: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(there), n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def _inside(key: str) -> str:
    """A hint for a key without its group: `policy_steps` where `preset.policy_steps` is meant."""
    for group in groups():
        for name in choices(group):
            if re.search(rf"^{re.escape(key)}:", choice_file(group, name).read_text(), re.MULTILINE):
                return f" (did you mean {group}.{key}?)"
    return ""


def unknown_key(key: str, config: DictConfig) -> str:
    """What is said of a key that is not in the composed configuration."""
    from omegaconf import OmegaConf

    there: Any = OmegaConf.to_container(config)
    group = key.split(".")[0]
    beside = [name for name in _keys(there) if name.startswith(f"{group}.")]
    return f"{key}: unknown key{_near(key, beside)}; `tailo train --cfg job` lists the keys there are"


def key_of(override: str) -> str:
    """The key that an override sets."""
    return override.lstrip("+~").partition("=")[0]


def of_groups(overrides: Sequence[str]) -> list[str]:
    """Those overrides that choose of a group, or are Hydra's own business: what decides which files are composed."""
    return [one for one in overrides if key_of(one).partition("@")[0] in groups() or one.startswith(("hydra", "~"))]


def _keys(tree: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for name, value in tree.items():
        yield f"{prefix}{name}"
        if isinstance(value, Mapping):
            yield from _keys(value, f"{prefix}{name}.")
