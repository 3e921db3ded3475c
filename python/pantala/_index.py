"""Slicing of tensors, as NumPy has it, in terms of the ops `slice`, `flip`, `reshape` and `take`."""

from __future__ import annotations

import builtins
import operator
from typing import Any

from . import _tensor
from ._types import is_array
from .errors import IndexError, TypeError, UnsupportedError, fail


def item(x: _tensor.Tensor, index: Any) -> _tensor.Tensor:
    entries = _complete(x, index if isinstance(index, tuple) else (index,))
    gathered = [k for k, entry in enumerate(entries) if _is_gathered(entry)]
    if len(gathered) > 1:
        raise fail(
            UnsupportedError, "one list of numbers may stand among the slices; use pn.take for more"
        )
    sliced = _sliced(x, [entry for entry in entries if entry is not None])
    shaped, place = _shaped(sliced, entries)
    if not gathered:
        return shaped
    return _taken(shaped, entries[gathered[0]], place)


def _is_gathered(entry: Any) -> bool:
    return isinstance(entry, (_tensor.Tensor, list)) or is_array(entry)


def _complete(x: _tensor.Tensor, index: tuple[Any, ...]) -> list[Any]:
    """An entry for each axis, and None for each new one."""
    dots = [k for k, entry in enumerate(index) if entry is Ellipsis]
    if len(dots) > 1:
        raise fail(TypeError, "an index can have one ellipsis ('...')")
    given = sum(1 for entry in index if entry is not None and entry is not Ellipsis)
    if given > x.ndim:
        raise fail(TypeError, f"{given} indices for a tensor of {x.ndim} axes, {x!r}")
    rest = [slice(None)] * (x.ndim - given)
    at = dots[0] if dots else len(index)
    return [*index[:at], *rest, *index[at + 1 :]]


def _sliced(x: _tensor.Tensor, entries: list[Any]) -> _tensor.Tensor:
    """Slices and single positions; the latter leave an axis of size 1."""
    ranges = [_range(entry, axis, size) for axis, (entry, size) in enumerate(zip(entries, x.shape))]
    backwards = [axis for axis, (_, _, step) in enumerate(ranges) if step < 0]
    ranges = [_forwards(*bounds) for bounds in ranges]
    if any(b != (0, size, 1) for b, size in zip(ranges, x.shape)):
        starts, ends, steps = ([bounds[k] for bounds in ranges] for k in range(3))
        x = _tensor.apply("slice", [x], {"starts": starts, "ends": ends, "steps": steps})
    return _tensor.apply("flip", [x], {"axes": backwards}) if backwards else x


def _range(entry: Any, axis: int, size: int) -> tuple[int, int, int]:
    if _is_gathered(entry):
        return 0, size, 1
    if isinstance(entry, slice):
        start, stop, step = entry.indices(size)
        return start, stop, step
    if isinstance(entry, bool):
        raise fail(UnsupportedError, "masks have no fixed shape; pn.where chooses element by element")
    try:
        position = operator.index(entry)
    except _BuiltinTypeError:
        raise fail(TypeError, f"a tensor cannot be indexed by {entry!r}") from None
    if not -size <= position < size:
        raise fail(IndexError, f"index {position} is out of range for axis {axis} of size {size}")
    position %= size
    return position, position + 1, 1


def _forwards(start: int, stop: int, step: int) -> tuple[int, int, int]:
    """The same elements with a step above 0."""
    count = len(range(start, stop, step))
    if count == 0:
        return 0, 0, 1
    if step > 0:
        return start, start + (count - 1) * step + 1, step
    return start + (count - 1) * step, start + 1, -step


def _shaped(x: _tensor.Tensor, entries: list[Any]) -> tuple[_tensor.Tensor, int]:
    """Without the axes of single positions and with the new ones; and where the list of numbers
    stands."""
    shape: list[int] = []
    axis = place = 0
    for entry in entries:
        if entry is None:
            shape.append(1)
            continue
        if _is_gathered(entry):
            place = len(shape)
        if _is_gathered(entry) or isinstance(entry, slice):
            shape.append(x.shape[axis])
        axis += 1
    return x.reshape(shape), place


def _taken(x: _tensor.Tensor, index: Any, axis: int) -> _tensor.Tensor:
    import numpy as np

    if not isinstance(index, _tensor.Tensor):
        numbers = np.asarray(index)
        if numbers.dtype == bool:
            raise fail(
                UnsupportedError, "masks have no fixed shape; pn.where chooses element by element"
            )
        if numbers.size and numbers.dtype.kind not in "iu":
            raise fail(TypeError, f"positions are whole numbers, not {numbers.dtype}")
        size = x.shape[axis]
        if numbers.size and (numbers.min() < -size or numbers.max() >= size):
            raise fail(IndexError, f"index {index} is out of range for an axis of size {size}")
        index = np.where(numbers < 0, numbers + size, numbers).astype(np.int64)
    return _tensor.apply("take", [x, index], {"axis": axis})



_BuiltinTypeError = builtins.TypeError
