"""From plain YAML values to dataclasses, refusing whatever the dataclass does not say."""

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, TypeVar, Union, cast

Config = TypeVar("Config")


class ConfigError(ValueError):
    """A configuration key that is unknown, missing, of the wrong type or out of range; the message names it."""


def parse(cls: type[Config], tree: Any, path: str = "") -> Config:
    """Turn a resolved tree of plain values (dicts, lists, numbers, strings) into a dataclass.

    Raises:
        ConfigError: naming the key, what was found and what is expected. Nothing is converted silently: ``no`` read as
            False where a language is wanted is an error, an integer is taken for a float, a bool never for a number.
    """
    if not isinstance(tree, Mapping):
        named = isinstance(tree, str) and path and "[" not in path
        hint = f" (a group is chosen by its name with slashes: {path.replace('.', '/')}={tree})" if named else ""
        raise ConfigError(f"{path or 'config'}: expected a group of keys, found {tree!r}{hint}")
    hints = typing.get_type_hints(cls)
    names = [field.name for field in dataclasses.fields(cast(Any, cls))]
    unknown = [str(key) for key in tree if key not in names]
    if unknown:
        raise ConfigError(f"{_join(path, unknown[0])}: unknown key; known here: {', '.join(names)}")
    missing = [name for name in names if name not in tree]
    if missing:
        raise ConfigError(f"{_join(path, missing[0])}: missing")
    return cls(**{name: _value(hints[name], tree[name], _join(path, name)) for name in names})


def to_tree(config: Any) -> Any:
    """The inverse of :func:`parse`: plain dicts, lists and scalars, ready for YAML."""
    if dataclasses.is_dataclass(config):
        return {field.name: to_tree(getattr(config, field.name)) for field in dataclasses.fields(config)}
    if isinstance(config, tuple):
        return [to_tree(item) for item in config]
    return config


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _value(kind: Any, value: Any, path: str) -> Any:
    origin = typing.get_origin(kind)
    if origin in (Union, types.UnionType):
        return _one_of(typing.get_args(kind), value, path)
    if origin is Literal:
        choices = typing.get_args(kind)
        if value not in choices or isinstance(value, bool):
            raise ConfigError(f"{path}: expected one of {', '.join(map(str, choices))}, found {value!r}")
        return value
    if origin is tuple:
        item_kind = typing.get_args(kind)[0]
        items = value if isinstance(value, (list, tuple)) else [value]  # one file needs no brackets
        return tuple(_value(item_kind, item, f"{path}[{i}]") for i, item in enumerate(items))
    if dataclasses.is_dataclass(kind):
        return parse(cast(type[Any], kind), value, path)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        hint = " (write it in quotes)" if kind is str else ""
        raise ConfigError(f"{path}: expected {kind.__name__}, found {value!r}{hint}")
    return value


def _one_of(kinds: tuple[Any, ...], value: Any, path: str) -> Any:
    """A union: null, or dataclasses told apart by their Literal field, or plain types tried in turn."""
    if value is None and type(None) in kinds:
        return None
    kinds = tuple(kind for kind in kinds if kind is not type(None))
    if len(kinds) == 1:
        return _value(kinds[0], value, path)
    if isinstance(value, Mapping):
        groups = [kind for kind in kinds if dataclasses.is_dataclass(kind)]
        for key in ("name", "kind"):
            allowed = {kind: typing.get_args(typing.get_type_hints(kind).get(key, str)) for kind in groups}
            if any(allowed.values()):
                for kind, choices in allowed.items():
                    if value.get(key) in choices:
                        return parse(cast(type[Any], kind), value, path)
                every = ", ".join(str(choice) for choices in allowed.values() for choice in choices)
                raise ConfigError(f"{path}.{key}: expected one of {every}, found {value.get(key)!r}")
        if len(groups) == 1:
            return parse(cast(type[Any], groups[0]), value, path)
    plain = [kind for kind in kinds if not dataclasses.is_dataclass(kind)]
    for kind in plain:
        try:
            return _value(kind, value, path)
        except ConfigError:
            continue
    raise ConfigError(f"{path}: found {value!r}, which is none of what is expected here")
