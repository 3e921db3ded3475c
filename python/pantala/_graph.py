"""Graphs, initialisers, and what is done with whole graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from . import _pantala as _core
from . import init as _init
from ._tensor import Tensor
from ._types import NUMBERS, DType, DTypeLike, Sizes, as_array, dtype, handed_out, literal, number, sizes
from .errors import TypeError, fail


@dataclass(frozen=True)
class Leaf:
    """What enters a graph from outside: an "input", "parameter", "state" or "scalar"."""

    kind: str
    name: str
    value: Tensor


class Graph:
    """A graph of values. Its leaves are made by `input`, `parameter`, `state`, `scalar` and
    `constant`; everything else by the functions of the package and the operators of tensors.

    >>> import pantala as pn
    >>> g = pn.Graph()
    >>> x = g.input("x", (64, 784))
    >>> labels = g.input("labels", 64, pn.i64)
    >>> h = pn.relu(pn.nn.linear("fc1", x, 128))
    >>> loss = pn.cross_entropy(pn.nn.linear("fc2", h, 10), labels)
    >>> g
    Graph(2 inputs, 4 parameters, 17 nodes)
    """

    def __init__(self, *, _of: _core.Graph | None = None) -> None:
        self._core = _core.Graph() if _of is None else _of

    # --- leaves

    def input(self, name: str, shape: Sizes, dtype: DTypeLike = DType.f32) -> Tensor:
        """A value that is given anew at each step."""
        return Tensor(self._core.input(name, sizes(shape), _name(dtype)))

    def parameter(
        self,
        name: str,
        shape: Sizes,
        init: _init.InitializerLike = None,
        dtype: DTypeLike = DType.f32,
    ) -> Tensor:
        """A value that is trained; zeros at first unless `init` says otherwise."""
        start = _init.initializer(init)._core
        return Tensor(self._core.parameter(name, sizes(shape), start, _name(dtype)))

    def state(
        self,
        name: str,
        shape: Sizes,
        init: _init.InitializerLike = None,
        dtype: DTypeLike = DType.f32,
    ) -> Tensor:
        """A value that is carried from step to step; `update` says how it changes."""
        start = _init.initializer(init)._core
        return Tensor(self._core.state(name, sizes(shape), start, _name(dtype)))

    def scalar(self, name: str, value: float) -> Tensor:
        """A hyper-parameter, which can be set between steps without compiling anything."""
        return Tensor(self._core.scalar(name, value))

    def constant(
        self, value: Any, shape: Sizes | None = None, dtype: DTypeLike | None = None
    ) -> Tensor:
        """One number for all elements, or all elements of an array.

        >>> import pantala as pn
        >>> g = pn.Graph()
        >>> g.constant(0.5, (2, 2)), g.constant([[1, 2, 3]], dtype=pn.i64)
        (Tensor(f32[2,2]), Tensor(i64[1,3]))
        """
        if isinstance(value, NUMBERS):
            wanted = DType.f32 if dtype is None else dtype
            return Tensor(
                self._core.constant(number(value), [] if shape is None else sizes(shape), _name(wanted))
            )
        array = as_array(value, None if dtype is None else _dtype(dtype))
        made = Tensor(self._core.data(_core.literal(array)))
        return made if shape is None else made.reshape(shape)

    def rng_seed(self) -> Tensor:
        """The seed of the random ops, a state."""
        return Tensor(self._core.rng_seed())

    def rng_draw(self) -> Tensor:
        """The counter of the random ops, a state."""
        return Tensor(self._core.rng_draw())

    # --- results

    def output(self, name: str, value: Tensor | None = None) -> Tensor:
        """Names a value as a result; without a value, the result of this name.

        >>> import pantala as pn
        >>> g = pn.Graph()
        >>> _ = g.output("y", g.input("x", 3) * 2)
        >>> g.output("y")
        Tensor(f32[3])
        """
        if value is None:
            return Tensor(self._core.output(name))
        self._core.add_output(name, _tensor("output", value))
        return value

    def update(self, leaf: Tensor, value: Tensor) -> None:
        """The value that a parameter or state has after the step."""
        self._core.update(_tensor("update", leaf), _tensor("update", value))

    def leaves(self, kind: str | None = None) -> list[Leaf]:
        found = [Leaf(k, name, Tensor(value)) for k, name, value in self._core.leaves()]
        return [leaf for leaf in found if kind is None or leaf.kind == kind]

    def find(self, name: str) -> Tensor | None:
        found = self._core.find(name)
        return None if found is None else Tensor(found)

    def leaf(self, name: str) -> Tensor:
        """The leaf of this name; a TypeError with the nearest name if there is none."""
        return Tensor(self._core.leaf(name))

    __getitem__ = leaf

    @property
    def outputs(self) -> dict[str, Tensor]:
        return {name: Tensor(value) for name, value in self._core.outputs()}

    @property
    def updates(self) -> list[tuple[Tensor, Tensor]]:
        """(leaf, new value)"""
        return [(Tensor(leaf), Tensor(value)) for leaf, value in self._core.updates()]

    def has(self, value: Tensor) -> bool:
        """Whether it is a value of this graph, or of one that this is a copy of."""
        return self._core.has(_tensor("has", value))

    def value(self, value: Tensor) -> Tensor:
        """This graph's handle for a value of a graph that it was copied from."""
        return Tensor(self._core.value(_tensor("value", value)))

    def with_outputs(self, outputs: Mapping[str, Tensor]) -> Graph:
        """The same nodes with these outputs instead."""
        pairs = [(name, _tensor("with_outputs", value)) for name, value in outputs.items()]
        return Graph(_of=self._core.with_outputs(pairs))

    def without_updates(self) -> Graph:
        """The same nodes and outputs: running it changes nothing."""
        return Graph(_of=self._core.without_updates())

    def copy(self) -> Graph:
        return Graph(_of=self._core.copy())

    def text(self, locations: bool = False) -> str:
        """The text form, which `parse_graph` reads back."""
        return self._core.text(locations)

    def __len__(self) -> int:
        """Nodes."""
        return self._core.size()

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Graph) and self._core.same(other._core)

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        kinds = [leaf[0] for leaf in self._core.leaves()]
        counts = [_counted(kinds.count(kind), kind) for kind in ("input", "parameter", "state")]
        counts += [_counted(len(self._core.outputs()), "output"), f"{len(self)} nodes"]
        return f"Graph({', '.join(text for text in counts if text)})"

    def _repr_html_(self) -> str:
        from ._tables import graph_table

        return graph_table(self)

    def __reduce__(self) -> Any:
        return parse_graph, (self.text(),)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' if count != 1 else ''}" if count else ""


def _dtype(value: DTypeLike) -> DType:
    return dtype(value)


def _name(value: DTypeLike) -> str:
    return dtype(value).value


def _tensor(what: str, value: Any) -> _core.Tensor:
    if not isinstance(value, Tensor):
        raise fail(TypeError, f"{what} takes a tensor of the graph, got a {type(value).__name__}")
    return value._core


def parse_graph(text: str, file: str = "<text>") -> Graph:
    """The graph of a text form; `file` is its name in messages."""
    return Graph(_of=_core.parse_graph(text, file))


def verify(graph: Graph) -> None:
    """Checks every invariant of a graph; InternalError on the first that does not hold."""
    _core.verify(graph._core)


@dataclass(frozen=True)
class Gradients:
    """A graph with gradients beside the old nodes, and the gradients, one per requested value."""

    graph: Graph
    gradients: list[Tensor]


def differentiate(
    graph: Graph,
    loss: Tensor,
    wrt: Sequence[Tensor],
    *,
    seed: Tensor | None = None,
    keep_stop_gradients: bool = False,
) -> Gradients:
    """Differentiates a scalar with respect to parameters, inputs or values between.

    >>> import pantala as pn
    >>> g = pn.Graph()
    >>> x = g.input("x", 3)
    >>> result = pn.differentiate(g, (x * x).sum(), [x])
    >>> pn.evaluate(result.graph, result.gradients, {"x": [1.0, 2.0, 3.0]})[0]
    array([2., 4., 6.], dtype=float32)
    """
    made, gradients = _core.differentiate(
        graph._core,
        _tensor("differentiate", loss),
        [_tensor("differentiate", value) for value in wrt],
        None if seed is None else _tensor("differentiate", seed),
        keep_stop_gradients,
    )
    return Gradients(Graph(_of=made), [Tensor(gradient) for gradient in gradients])


Values = Mapping[str, Any]
Array = npt.NDArray[Any]


def evaluate(
    graph: Graph, values: Tensor | Sequence[Tensor], inputs: Values | None = None, seed: int = 0
) -> list[Array]:
    """The numbers of some values, by the interpreter in double precision: slow, and the truth that
    every device is tested against. Parameters that are not given have their first values.

    >>> import pantala as pn
    >>> g = pn.Graph()
    >>> x = g.input("x", (2, 2))
    >>> pn.evaluate(g, pn.softmax(x), {"x": [[0, 0], [1, 1]]})[0]
    array([[0.5, 0.5],
           [0.5, 0.5]], dtype=float32)
    """
    wanted = [values] if isinstance(values, Tensor) else list(values)
    bound = {name: literal(value, _leaf_type(graph, name)) for name, value in (inputs or {}).items()}
    results = _core.evaluate(
        graph._core, [_tensor("evaluate", value) for value in wanted], bound, seed
    )
    return [
        handed_out(_core.literal_array(result), value.dtype)
        for result, value in zip(results, wanted)
    ]


def _leaf_type(graph: Graph, name: str) -> DType | None:
    found = graph.find(name)
    return None if found is None else found.dtype
