"""Functions that are more than one op of the table: those that choose between ops, and helpers."""

from __future__ import annotations

from typing import Literal, NamedTuple

from . import _ops
from . import _pantala as _core
from ._op_parts import Ints, int_list
from ._tensor import Operand, Tensor, apply_all
from ._types import DType, DTypeLike, Sizes, sizes
from .errors import TypeError, fail

Reduction = Literal["mean", "sum", "none"]
IGNORED_LABEL = -100


def _tensor(op: str, x: Operand) -> Tensor:
    if not isinstance(x, Tensor):
        raise fail(TypeError, f"{op} needs a tensor of a graph, got a {type(x).__name__}")
    return x


def cross_entropy(
    logits: Operand,
    target: Operand,
    weight: Operand | None = None,
    reduction: Reduction = "mean",
    label_smoothing: float = 0.0,
    ignore_index: int = IGNORED_LABEL,
) -> Tensor:
    """The cross entropy of softmax(logits), whose classes are on axis 1 (on axis 0 if there is one
    axis only). Whole numbers as target name a class; floats are probabilities of the logits' shape.

    >>> import pantala as pn
    >>> g = pn.Graph()
    >>> pn.cross_entropy(g.input("logits", (8, 10)), g.input("labels", 8, pn.i64)).shape
    ()
    """
    if not isinstance(target, Tensor) or not target.dtype.is_float:
        return _ops.cross_entropy(
            logits, target, weight, reduction, label_smoothing, ignore_index
        )
    if ignore_index != IGNORED_LABEL:
        raise fail(
            TypeError, f"cross_entropy: ignore_index is for class targets only, got target {target!r}"
        )
    return _ops.cross_entropy_probabilities(logits, target, weight, reduction, label_smoothing)


def cast(x: Operand, dtype: DTypeLike) -> Tensor:
    """x in another element type; x itself if it has it already."""
    return _tensor("cast", x).astype(dtype)


def reshape(x: Operand, shape: Ints) -> Tensor:
    """The same elements under another shape; one size may be -1.

    >>> import pantala as pn
    >>> pn.reshape(pn.Graph().input("x", (2, 6)), (3, -1)).shape
    (3, 4)
    """
    return _tensor("reshape", x).reshape(int_list(shape))


def permute(x: Operand, axes: Ints) -> Tensor:
    """The axes in another order."""
    return _tensor("permute", x).permute(int_list(axes))


def slice_axis(x: Operand, axis: int, start: int, end: int, step: int = 1) -> Tensor:
    """Every step-th position of [start, end) of one axis; negative ends count from the end."""
    x = _tensor("slice_axis", x)
    index: list[slice] = [slice(None)] * x.ndim
    if not -x.ndim <= axis < x.ndim:
        raise fail(TypeError, f"slice_axis: axis {axis} is out of range for {x!r}")
    index[axis] = slice(start, end, step)
    return x[tuple(index)]


def full_beside(x: Tensor, shape: Sizes, value: float) -> Tensor:
    """One number in any shape, in the graph and dtype of x."""
    return Tensor(x._core.graph.constant(float(value), sizes(shape), x.dtype.value))


def full_like(x: Tensor, value: float) -> Tensor:
    """One number in the shape of x."""
    return full_beside(x, x.shape, value)


def zeros_like(x: Tensor) -> Tensor:
    return full_like(x, 0)


def ones_like(x: Tensor) -> Tensor:
    return full_like(x, 1)


def iota_beside(x: Tensor, shape: Sizes, axis: int, dtype: DTypeLike = DType.i64) -> Tensor:
    """0, 1, 2, ... along one axis, in the graph of x."""
    return _ops.iota(x.graph, sizes(shape), axis, dtype)


class MaxPool2dResults(NamedTuple):
    """The maxima and their positions h * width + w in each plane."""

    y: Tensor
    indices: Tensor


def max_pool2d_with_indices(
    x: Operand,
    kernel: Ints,
    stride: Ints = (),
    padding: Ints = 0,
    ceil_mode: bool = False,
) -> MaxPool2dResults:
    """The largest elements of windows, and where they stand."""
    attributes = {"kernel": int_list(kernel), "stride": int_list(stride)}
    results = apply_all(
        "max_pool2d",
        [x],
        {**attributes, "padding": int_list(padding), "ceil_mode": ceil_mode},
    )
    return MaxPool2dResults(*results)


class LossParts(NamedTuple):
    """A mean loss is sum / weight."""

    sum: Tensor
    weight: Tensor


def loss_parts(loss: Tensor) -> LossParts:
    """The two values whose quotient a mean loss is; of another scalar itself and 1."""
    total, weight = _core.loss_parts(loss._core)
    return LossParts(Tensor(total), Tensor(weight))


__all__ = [
    "cast",
    "cross_entropy",
    "full_beside",
    "full_like",
    "iota_beside",
    "loss_parts",
    "max_pool2d_with_indices",
    "ones_like",
    "permute",
    "reshape",
    "slice_axis",
    "zeros_like",
]
