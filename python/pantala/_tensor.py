"""Tensor: a handle to one value of a graph, with the operators that NumPy's arrays have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from . import _pantala as _core
from ._types import NUMBERS, DType, DTypeLike, as_array, dtype, is_array, number, sizes
from .errors import TypeError, fail, not_pickled

if TYPE_CHECKING:
    from ._graph import Graph

CoreTensor = _core.Tensor  # the class below has a member _core
Number = Union[int, float, bool, "np.number[Any]"]
Operand = Union["Tensor", Number, "np.ndarray[Any, Any]"]
Axes = Union[int, Sequence[int], None]
Index = Any


class Tensor:
    """A value of a graph. It has a shape and a dtype, but no numbers: those are there when a session
    runs. Operators build nodes and broadcast as NumPy does; a number takes the tensor's dtype, an
    array becomes a constant.

    >>> import pantala as pn
    >>> g = pn.Graph()
    >>> x = g.input("x", (4, 3))
    >>> x[:, 1:] * 2 + 1
    Tensor(f32[4,2])
    >>> (x @ x.T).sum(axes=1).shape
    (4,)
    """

    __slots__ = ("_core",)
    __array_ufunc__ = None  # arrays leave the operator to the tensor beside them
    _core: CoreTensor

    def __init__(self, core: CoreTensor) -> None:
        if not isinstance(core, CoreTensor):
            raise fail(TypeError, "tensors are made by a graph: Graph().input(...), pn.relu(x), ...")
        self._core = core

    # --- what it is

    @property
    def shape(self) -> tuple[int, ...]:
        return self._core.shape

    @property
    def dtype(self) -> DType:
        return DType(self._core.dtype)

    @property
    def ndim(self) -> int:
        return self._core.rank

    rank = ndim

    @property
    def size(self) -> int:
        """The number of its elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def graph(self) -> Graph:
        from ._graph import Graph

        return Graph(_of=self._core.graph)

    def same(self, other: Tensor) -> bool:
        """Whether both are the same value of the same graph; `==` compares elements instead."""
        return self._core.same(other._core)

    def __repr__(self) -> str:
        return f"Tensor({self._core.type})"

    __hash__ = object.__hash__

    def __len__(self) -> int:
        if not self.shape:
            raise fail(TypeError, "a tensor without axes has no length")
        return self.shape[0]

    def __bool__(self) -> bool:
        raise fail(
            TypeError,
            "a tensor has no truth value while the graph is built; pn.where(condition, a, b) "
            "chooses between values",
        )

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise fail(
            TypeError,
            "a tensor has no numbers until a session runs: name it with graph.output(name, tensor) "
            "and read session.output(name), or use pn.evaluate",
        )

    # --- operators

    def __add__(self, other: Operand) -> Tensor:
        return apply("add", [self, other])

    def __radd__(self, other: Operand) -> Tensor:
        return apply("add", [other, self])

    def __sub__(self, other: Operand) -> Tensor:
        return apply("sub", [self, other])

    def __rsub__(self, other: Operand) -> Tensor:
        return apply("sub", [other, self])

    def __mul__(self, other: Operand) -> Tensor:
        return apply("mul", [self, other])

    def __rmul__(self, other: Operand) -> Tensor:
        return apply("mul", [other, self])

    def __truediv__(self, other: Operand) -> Tensor:
        return apply("div", [self, other])

    def __rtruediv__(self, other: Operand) -> Tensor:
        return apply("div", [other, self])

    def __matmul__(self, other: Operand) -> Tensor:
        return apply("matmul", [self, other])

    def __rmatmul__(self, other: Operand) -> Tensor:
        return apply("matmul", [other, self])

    def __pow__(self, exponent: Operand) -> Tensor:
        if isinstance(exponent, (int, float)):
            return apply("pow_scalar", [self], {"exponent": float(exponent)})
        return apply("pow", [self, exponent])

    def __rpow__(self, base: Operand) -> Tensor:
        return apply("pow", [base, self])

    def __neg__(self) -> Tensor:
        return apply("neg", [self])

    def __pos__(self) -> Tensor:
        return self

    def __abs__(self) -> Tensor:
        return apply("abs", [self])

    def __lt__(self, other: Operand) -> Tensor:  # type: ignore[misc]
        return apply("lt", [self, other])

    def __le__(self, other: Operand) -> Tensor:  # type: ignore[misc]
        return apply("le", [self, other])

    def __gt__(self, other: Operand) -> Tensor:  # type: ignore[misc]
        return apply("gt", [self, other])

    def __ge__(self, other: Operand) -> Tensor:  # type: ignore[misc]
        return apply("ge", [self, other])

    def __eq__(self, other: object) -> Tensor:  # type: ignore[override]
        return apply("eq", [self, other])

    def __ne__(self, other: object) -> Tensor:  # type: ignore[override]
        return apply("ne", [self, other])

    def __and__(self, other: Operand) -> Tensor:
        return apply("logical_and", [self, other])

    def __or__(self, other: Operand) -> Tensor:
        return apply("logical_or", [self, other])

    def __invert__(self) -> Tensor:
        return apply("logical_not", [self])

    # --- slicing

    def __getitem__(self, index: Index) -> Tensor:
        """As NumPy's basic slicing; one tensor or array of whole numbers may stand among the slices.

        >>> import pantala as pn
        >>> x = pn.Graph().input("x", (4, 6, 8))
        >>> x[0].shape, x[..., -1].shape, x[1:3, None, ::2].shape, x[:, ::-1].shape
        ((6, 8), (4, 6), (2, 1, 3, 8), (4, 6, 8))
        """
        from ._index import item

        return item(self, index)

    def __iter__(self) -> Any:
        return (self[k] for k in range(len(self)))

    # --- the functions that arrays have as methods, too

    @property
    def T(self) -> Tensor:
        """All axes in the reverse order."""
        return apply("permute", [self], {"axes": list(reversed(range(self.ndim)))})

    def __reduce__(self) -> Any:
        raise not_pickled("a tensor", "its graph can be, and graph.find() or graph.leaf() gives its values again")

    def reshape(self, *shape: Any) -> Tensor:
        """One size may be -1."""
        wanted = sizes(shape[0] if len(shape) == 1 else shape)
        return self if list(self.shape) == wanted else apply("reshape", [self], {"shape": wanted})

    def permute(self, *axes: Any) -> Tensor:
        return apply("permute", [self], {"axes": sizes(axes[0] if len(axes) == 1 else axes)})

    def transpose(self, axis_a: int = -2, axis_b: int = -1) -> Tensor:
        """Swaps two axes; without arguments the last two."""
        return apply("transpose", [self], {"axis_a": axis_a, "axis_b": axis_b})

    def flatten(self, first: int = 0, last: int = -1) -> Tensor:
        return apply("flatten", [self], {"first": first, "last": last})

    def squeeze(self, axis: int = 0) -> Tensor:
        return apply("squeeze", [self], {"axis": axis})

    def unsqueeze(self, axis: int) -> Tensor:
        return apply("unsqueeze", [self], {"axis": axis})

    def sum(self, axes: Axes = None, keepdims: bool = False) -> Tensor:
        return _reduced("sum", self, axes, keepdims)

    def mean(self, axes: Axes = None, keepdims: bool = False) -> Tensor:
        return _reduced("mean", self, axes, keepdims)

    def max(self, axes: Axes = None, keepdims: bool = False) -> Tensor:
        return _reduced("amax", self, axes, keepdims)

    def min(self, axes: Axes = None, keepdims: bool = False) -> Tensor:
        return _reduced("amin", self, axes, keepdims)

    def argmax(self, axis: int = -1, keepdims: bool = False) -> Tensor:
        return apply("argmax", [self], {"axis": axis, "keepdims": keepdims})

    def astype(self, to: DTypeLike) -> Tensor:
        wanted = dtype(to)
        return self if self.dtype is wanted else apply("cast", [self], {"dtype": wanted.value})

    cast = astype


def _reduced(op: str, x: Tensor, axes: Axes, keepdims: bool) -> Tensor:
    return apply(op, [x], {"axes": [] if axes is None else sizes(axes), "keepdims": keepdims})


def apply(name: str, inputs: Sequence[Any], attributes: dict[str, Any] | None = None) -> Tensor:
    """Builds one node of the op of this name; of several results the first."""
    return apply_all(name, inputs, attributes)[0]


def apply_all(
    name: str, inputs: Sequence[Any], attributes: dict[str, Any] | None = None
) -> list[Tensor]:
    graph = graph_of(name, inputs)
    operands = [_operand(name, graph, value) for value in inputs]
    return [Tensor(made) for made in _core.apply(name, operands, attributes or {})]


def graph_of(name: str, inputs: Sequence[Any]) -> _core.Graph:
    for value in inputs:
        if isinstance(value, Tensor):
            return value._core.graph
    raise fail(TypeError, f"{name} needs at least one tensor of a graph, got {_kinds(inputs)}")


def _kinds(inputs: Sequence[Any]) -> str:
    return ", ".join(type(value).__name__ for value in inputs) or "nothing"


def _operand(name: str, graph: _core.Graph, value: Any) -> Any:
    if isinstance(value, Tensor):
        return value._core
    if isinstance(value, NUMBERS):
        return number(value)
    if is_array(value):
        return graph.data(_core.literal(as_array(value)))
    raise fail(
        TypeError, f"{name}: a {type(value).__name__} is neither a tensor nor a number nor an array"
    )


def ints(value: Any) -> list[int]:
    """One entry for all axes, or a list of them."""
    return sizes(value)


def axes_of(axes: Axes) -> list[int]:
    return [] if axes is None else sizes(axes)


__all__ = ["Axes", "Operand", "Tensor"]
