"""Mistakes that Python itself notices inside of the package (an argument of another kind, one too many, a
name that is none) become errors of Pantala at the user's line. Exceptions of the user's own code, which
the package has called, stay as they are."""

from __future__ import annotations

import builtins
import inspect
import os
import sys
import types
from typing import Any

import numpy as np

from . import errors

_KINDS: dict[type[BaseException], type[errors.Error]] = {
    builtins.TypeError: errors.TypeError,
    builtins.AttributeError: errors.TypeError,
    builtins.KeyError: errors.KeyError,
    builtins.IndexError: errors.IndexError,
    builtins.ValueError: errors.ValueError,
}
_SPECIAL = {"__init__", "__call__", "__getitem__", "__setitem__", "__delitem__"}
# Frames of the package, and of what it calls with the arguments that it was given.
_OURS = tuple(os.path.dirname(os.path.abspath(inspect.getfile(m))) + os.sep for m in (errors, os, np))
_USERS = ("site-packages", "dist-packages")  # below Python's own folder, but not Python's own


def install(package: str) -> None:
    """Guards the package's functions and classes that have no underscore, wherever they are known."""
    unguarded = {f"{package}.{name}" for name in ("_pantala", "_guard", "errors")}
    names = [name for name in sys.modules if name == package or name.startswith(f"{package}.")]
    known = [sys.modules[name] for name in names if name not in unguarded]
    guards: dict[int, Any] = {}
    for module in known:
        for name, value in list(vars(module).items()):
            if name.startswith("_") or getattr(value, "__module__", "") != module.__name__:
                continue
            if isinstance(value, types.FunctionType):
                guards[id(value)] = _guarded(value)
            elif isinstance(value, type) and not issubclass(value, BaseException):
                _guard_class(value)
    for module in known:
        for name, value in list(vars(module).items()):
            if id(value) in guards:
                setattr(module, name, guards[id(value)])


def _guard_class(kind: type) -> None:
    for name, value in list(vars(kind).items()):
        if name.startswith("_") and name not in _SPECIAL:
            continue
        made: Any = None
        if isinstance(value, types.FunctionType):
            made = _guarded(value)
        elif isinstance(value, (staticmethod, classmethod)):
            made = type(value)(_guarded(value.__func__))
        elif isinstance(value, property):
            made = property(*(_guarded(f) if f else None for f in (value.fget, value.fset, value.fdel)))
        if made is not None:
            setattr(kind, name, made)


def _guarded(function: Any) -> Any:
    if not isinstance(function, types.FunctionType):
        return function
    translated = _translated

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            other = translated(function, args, kwargs, error)
            if other is None:
                raise
            raise other from error

    # Who asks belongs to the same module as what is called: the finder of examples does.
    made = types.FunctionType(call.__code__, function.__globals__, function.__name__, None, call.__closure__)
    made.__kwdefaults__ = call.__kwdefaults__
    for name in ("__module__", "__qualname__", "__doc__", "__annotations__"):
        setattr(made, name, getattr(function, name))
    made.__dict__.update(function.__dict__)
    made.__wrapped__ = function  # type: ignore[attr-defined]
    return made


def _translated(function: Any, args: Any, kwargs: Any, error: BaseException) -> errors.Error | None:
    """The error to raise instead; None where it is not the package's."""
    if type(error) not in _KINDS or not _is_ours(error.__traceback__):
        return None
    return errors.fail(_KINDS[type(error)], _told(function, args, kwargs, str(error)))


def _is_ours(trace: types.TracebackType | None) -> bool:
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith(("<", *_OURS)):
            return False
        if any(part in file for part in _USERS) and not file.startswith((_OURS[0], _OURS[2])):
            return False
        trace = trace.tb_next
    return True


def _told(function: Any, args: Any, kwargs: Any, text: str) -> str:
    """"Session.set_scalar(name: str, value: float): the arguments (str, str) do not fit"."""
    described = [type(value).__name__ for value in _without_self(function, args)]
    described += [f"{name}={type(value).__name__}" for name, value in kwargs.items()]
    signature = inspect.signature(function)
    parameters = [p for p in signature.parameters.values() if p.name not in ("self", "cls") and p.name[0] != "_"]
    wanted = ", ".join(map(_described, parameters))
    reason = text.split("\n")[0]
    # What only the package's own authors understand says no more than that.
    more = "" if "incompatible function arguments" in reason or "attribute '_" in reason else f": {reason}"
    name = function.__qualname__.removesuffix(".__init__")
    return f"{name}({wanted}): the arguments ({', '.join(described)}) do not fit{more}"


def _described(parameter: inspect.Parameter) -> str:
    text = parameter.name
    if parameter.annotation is not parameter.empty:
        text += f": {parameter.annotation}"
    return text if parameter.default is parameter.empty else f"{text} = {parameter.default!r}"


def _without_self(function: Any, args: Any) -> Any:
    names = list(inspect.signature(function).parameters)
    return args[1:] if names and names[0] in ("self", "cls") else args
