"""Element types, shapes, and arrays of others."""

from __future__ import annotations

import builtins
import enum
from collections.abc import Sequence
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from . import _pantala as _core
from .errors import TypeError, ValueError, fail

_BuiltinTypeError = builtins.TypeError


class DType(enum.Enum):
    """An element type. Functions also take its name and NumPy's type of the same kind.

    >>> import pantala as pn
    >>> pn.f32, pn.dtype("i64") is pn.i64, pn.dtype("float32") is pn.f32
    (pn.f32, True, True)
    """

    f32 = "f32"
    f64 = "f64"
    f16 = "f16"
    bf16 = "bf16"
    i32 = "i32"
    i64 = "i64"
    u8 = "u8"
    boolean = "bool"

    @property
    def is_float(self) -> bool:
        return self in (DType.f32, DType.f64, DType.f16, DType.bf16)

    @property
    def is_integer(self) -> bool:
        return self in (DType.i32, DType.i64, DType.u8)

    @property
    def numpy(self) -> np.dtype[Any]:
        """NumPy's type of the arrays that are handed out; that of bf16 is float32.

        >>> import pantala as pn
        >>> pn.i64.numpy
        dtype('int64')
        """
        return np.dtype(_NUMPY[self])

    def __repr__(self) -> str:
        return f"pn.{self.name}"


_NUMPY = {
    DType.f32: "float32",
    DType.f64: "float64",
    DType.f16: "float16",
    DType.bf16: "float32",
    DType.i32: "int32",
    DType.i64: "int64",
    DType.u8: "uint8",
    DType.boolean: "bool",
}
_BY_NUMPY = {name: dtype for dtype, name in _NUMPY.items() if dtype is not DType.bf16}

DTypeLike = Union[DType, str, type, "np.dtype[Any]"]
Sizes = Union[int, Sequence[int]]


def dtype(value: DTypeLike) -> DType:
    """The element type that something stands for: a name, or a type of NumPy or Python.

    >>> import numpy as np
    >>> import pantala as pn
    >>> pn.dtype(np.float32), pn.dtype("bf16")
    (pn.f32, pn.bf16)
    """
    if isinstance(value, DType):
        return value
    if isinstance(value, str):
        for known in DType:
            if known.value == value:
                return known
    name = str(value).removeprefix("torch.")
    try:
        name = np.dtype(value).name
    except _BuiltinTypeError:
        pass
    if name == "bfloat16":
        return DType.bf16
    if name in _BY_NUMPY:
        return _BY_NUMPY[name]
    names = ", ".join(known.value for known in DType)
    raise fail(TypeError, f"{value!r} is no dtype; there are {names}")




def sizes(shape: Sizes) -> list[int]:
    """A shape as a list; a single number is a shape of one axis."""
    if isinstance(shape, (int, np.integer)):
        return [int(shape)]
    try:
        return [int(size.__index__()) for size in shape]
    except (AttributeError, _BuiltinTypeError):
        raise fail(TypeError, f"a shape is a list of whole numbers, not {shape!r}") from None


# Single numbers; complex ones are none.
NUMBERS = (int, float, np.integer, np.floating, np.bool_)


def number(value: Any) -> float:
    """One of NUMBERS as the double that the library takes."""
    try:
        made = float(value)
    except OverflowError:
        made = float("inf")
    if isinstance(value, (int, np.integer)) and made != int(value):
        raise fail(ValueError, f"{value} is no double; hand it over as an array of integers")
    return made


def is_array(value: object) -> bool:
    """Whether it is an array: NumPy's, or something that speaks DLPack, such as a tensor of torch."""
    return isinstance(value, np.ndarray) or hasattr(value, "__dlpack__")


def as_array(value: Any, like: DType | None = None) -> Any:
    """What the library can read: arrays as they are, without copying; lists and numbers as arrays of
    the type of `like`. Types that only others have (f16, u16, ...) are widened."""
    if isinstance(value, np.ndarray):
        if type(value) is not np.ndarray and np.ma.is_masked(value):
            raise fail(TypeError, "a masked array hides elements; fill them first: array.filled(...)")
        return _widened(value)
    if hasattr(value, "__dlpack__"):
        return _from_other(value)
    try:
        array = np.asarray(value)
    except (_BuiltinTypeError, builtins.ValueError) as error:
        raise fail(TypeError, f"a {type(value).__name__} that is no array: {error}") from None
    return _widened(array if like is None else _made_of_numbers(array, like))


def _made_of_numbers(given: npt.NDArray[Any], like: DType) -> npt.NDArray[Any]:
    """What NumPy has made of a list, as another type. NumPy itself would cut 1.5 to 1, take None for NaN and read
    texts; floats are rounded, and that is all."""
    if given.dtype == like.numpy:
        return given
    if given.size and given.dtype.kind not in ("biuf" if like.is_float else "biu"):
        raise fail(TypeError, f"{_told_of(given)} cannot be elements of {like.value}")
    with np.errstate(over="ignore"):
        made = given.astype(like.numpy)
    kept = np.isinf(made) == np.isinf(given) if like.is_float else made == given
    if not np.all(kept):
        raise fail(ValueError, f"{given[~kept][0] if given.ndim else given} is no number that {like.value} has")
    return made


def _told_of(given: npt.NDArray[Any]) -> str:
    """"NoneType and int", "str", "float64"."""
    if given.dtype.kind != "O":
        return given.dtype.type.__name__.rstrip("_")
    return " and ".join(sorted({type(element).__name__ for element in given.ravel()}))


_WIDER = {
    "float16": np.float32,
    "bfloat16": np.float32,
    "int8": np.int32,
    "int16": np.int32,
    "uint16": np.int32,
    "uint32": np.int64,
}


# NumPy's numbers of the types that are read as they are: asking for a type's name takes a microsecond.
_TAKEN = frozenset(np.dtype(name).num for name in _NUMPY.values() if name not in _WIDER)


def _widened(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if array.dtype.num in _TAKEN and array.dtype.isnative:
        return array
    wider = _WIDER.get(array.dtype.name)
    if wider is not None:
        return array.astype(wider)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _from_other(value: Any) -> Any:
    """Of another library. What tracks gradients is taken without them."""
    if getattr(value, "requires_grad", False):
        value = value.detach()
    if hasattr(value, "is_neg") and value.is_neg():  # torch writes the minus sign only where it is asked to
        value = value.resolve_neg()
    name = str(getattr(value, "dtype", "")).removeprefix("torch.")
    if name in _WIDER and hasattr(value, "to"):
        import torch

        value = value.to(getattr(torch, np.dtype(_WIDER[name]).name))
    return value


def handed_out(array: npt.NDArray[Any], given: DType) -> npt.NDArray[Any]:
    """f16 comes as f32 from the library."""
    return array.astype(np.float16) if given is DType.f16 else array


def literal(value: Any, like: DType | None = None) -> _core.Literal:
    return _core.literal(as_array(value, like))
