"""What the functions of ops are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, Union

from . import _pantala as _core
from ._graph import Graph
from ._tensor import Tensor, _operand
from ._types import DTypeLike, dtype, sizes
from .errors import TypeError, fail

INF = float("inf")
# One entry for each axis, or one for all; None is an empty list.
Ints = Union[int, Sequence[int], None]
Results = TypeVar("Results")


def int_list(value: Ints) -> list[int]:
    return [] if value is None else sizes(value)


def dtype_name(value: DTypeLike) -> str:
    return dtype(value).value


def optional(op: str, given: list[Any], **others: Any) -> list[Any]:
    """Operands with those that may be left out behind them. An op takes the first few of these, so
    a weight that is left out before something that is given is 1."""
    operands = list(given)
    names = [name for name, value in others.items() if value is not None]
    for name, value in others.items():
        if not names:
            break
        if value is None and name == "weight" and isinstance(others[names[0]], Tensor):
            value = _ones_like(others[names[0]])
        elif value is None:
            raise fail(TypeError, f"{op}: {names[0]} is given without {name}")
        else:
            names.pop(0)
        operands.append(value)
    return operands


def _ones_like(x: Tensor) -> Tensor:
    return Tensor(x._core.graph.constant(1.0, list(x.shape), x.dtype.value))


def draw(
    owner: Graph | Any, op: str, operands: list[Any], attributes: dict[str, Any]
) -> list[Tensor]:
    """An op that takes the graph's counters, or that has no operands."""
    if isinstance(owner, Tensor):
        graph = owner._core.graph
    elif isinstance(owner, Graph):
        graph = owner._core
    else:
        raise fail(TypeError, f"{op} needs a graph, or a tensor of one; got a {type(owner).__name__}")
    inputs = [_operand(op, graph, value) for value in operands]
    return [Tensor(made) for made in _core.draw(graph, op, inputs, attributes)]


def unpack(kind: type[Results], results: list[Tensor]) -> Results:
    return kind(*results[: len(kind._fields)])  # type: ignore[attr-defined]
