"""Initialisers: how a parameter or a state gets its first value. The numbers depend on the session's
seed and the leaf's name alone.

>>> import pantala as pn
>>> pn.init.normal(std=0.02)
pn.init.normal(0, 0.02)
"""

from __future__ import annotations

from typing import Any, Union

import numpy.typing as npt

from . import _pantala as _core
from ._types import NUMBERS, DTypeLike, Sizes, dtype, handed_out, is_array, literal, number, sizes
from .errors import TypeError, fail


class Initializer:
    """Made by the functions of this module."""

    def __init__(self, core: _core.Initializer) -> None:
        self._core = core

    def make(
        self, shape: Sizes, dtype: DTypeLike = "f32", name: str = "x", seed: int = 0
    ) -> npt.NDArray[Any]:
        """The first value of the leaf `name`."""
        given = _dtype(dtype)
        return handed_out(
            _core.init_make(self._core, sizes(shape), given.value, name, seed), given
        )

    def __repr__(self) -> str:
        text = self._core.text()
        if text.startswith("data"):
            return "pn.init.from_data(...)"
        return f"pn.init.{text.replace(',', ', ')}" + ("" if "(" in text else "()")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Initializer) and self._core == other._core

    __hash__ = object.__hash__


InitializerLike = Union[Initializer, float, "npt.NDArray[Any]", None]
_dtype = dtype


def initializer(value: InitializerLike) -> Initializer:
    """None is zeros, a number is that number everywhere, an array its own values."""
    if value is None:
        return zeros()
    if isinstance(value, Initializer):
        return value
    if isinstance(value, NUMBERS):
        return constant(number(value))
    if is_array(value) or isinstance(value, list):
        return from_data(value)
    raise fail(TypeError, f"a {type(value).__name__} is no initialiser; see pn.init")


def zeros() -> Initializer:
    return Initializer(_core.init_zeros())


def ones() -> Initializer:
    return Initializer(_core.init_ones())


def constant(value: float) -> Initializer:
    return Initializer(_core.init_constant(value))


def uniform(low: float = 0, high: float = 1) -> Initializer:
    return Initializer(_core.init_uniform(low, high))


def normal(mean: float = 0, std: float = 1) -> Initializer:
    return Initializer(_core.init_normal(mean, std))


def truncated_normal(
    mean: float = 0, std: float = 1, low: float = -2, high: float = 2
) -> Initializer:
    return Initializer(_core.init_truncated_normal(mean, std, low, high))


def xavier_uniform(gain: float = 1) -> Initializer:
    return Initializer(_core.init_xavier_uniform(gain))


def xavier_normal(gain: float = 1) -> Initializer:
    return Initializer(_core.init_xavier_normal(gain))


def kaiming_uniform(slope: float = 0) -> Initializer:
    """Of the fan-in, with the gain of a leaky ReLU of this slope, as PyTorch's default."""
    return Initializer(_core.init_kaiming_uniform(slope))


def kaiming_normal(slope: float = 0) -> Initializer:
    """As kaiming_uniform, from a normal distribution."""
    return Initializer(_core.init_kaiming_normal(slope))


def orthogonal(gain: float = 1) -> Initializer:
    return Initializer(_core.init_orthogonal(gain))


def from_data(values: Any) -> Initializer:
    """These values; the leaf has their shape."""
    return Initializer(_core.init_from_data(literal(values)))
