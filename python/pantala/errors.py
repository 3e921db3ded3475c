"""The exceptions of Pantala. All are an `Error`, and each is also of the built-in class that fits:
a wrong shape is a `TypeError`, a bad file an `OSError`. `place` is where in your program it happened.

>>> import pantala as pn
>>> g = pn.Graph()
>>> try:
...     pn.matmul(g.input("a", (2, 3)), g.input("b", (4, 5)))
... except TypeError as error:
...     print(isinstance(error, pn.Error), "inner sizes differ" in str(error))
True True
"""

from __future__ import annotations

import builtins
from typing import TypeVar

from . import _pantala as _core


class Error(Exception):
    """What all exceptions of Pantala are."""

    place: str = ""
    """Your file and line, "train.py:12"; "" where there is none."""


class TypeError(Error, builtins.TypeError):
    """A shape, dtype, option or name that has no meaning here."""


class ValueError(Error, builtins.ValueError):
    """A value that cannot be: an index or a class out of range."""


class IndexError(Error, builtins.IndexError):
    """A position outside of an axis; loops over the first axis of a tensor end with it."""


class KeyError(Error, builtins.KeyError):
    """A name that is not there, of something that is asked like a dict."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class ParseError(Error, builtins.OSError, builtins.ValueError):
    """A file or a text that is not what it claims to be."""


class IoError(Error, builtins.OSError):
    """A file that cannot be opened, read or written."""


class UnsupportedError(Error, builtins.NotImplementedError):
    """Valid, but not done here; the message lists all that is missing."""


class DeviceError(Error, builtins.RuntimeError):
    """What a device cannot do."""


class DivergenceError(Error, builtins.ArithmeticError):
    """The loss or a gradient is not finite. Weights and counters are those before the batch."""


class CancelledError(Error, builtins.RuntimeError):
    """What was called off in the middle."""


class ThreadError(Error, builtins.RuntimeError):
    """Something is used by two threads at a time, or behind a fork of its process."""


class ClosedError(Error, builtins.RuntimeError):
    """Something is used that was closed, or closed while it is used."""


class MemoryError(Error, builtins.MemoryError):
    """There is not enough memory."""


class InternalError(Error, builtins.RuntimeError):
    """A bug of Pantala."""


def _all_classes() -> dict[str, type[Error]]:
    return {
        name: value
        for name, value in globals().items()
        if isinstance(value, type) and issubclass(value, Error)
    }


__all__ = [*_all_classes()]


_Kind = TypeVar("_Kind", bound=Error)


def fail(kind: type[_Kind], message: str) -> _Kind:
    """An exception with the user's place in front of its message."""
    place = _core.place()
    error = kind(f"{place}: {message}" if place else message)
    error.place = place
    return error


def not_pickled(what: str, instead: str) -> Error:
    return fail(TypeError, f"{what} cannot be pickled; {instead}")


_core.set_errors(_all_classes())
