"""Looking at things: what a graph, model, plan, session or file holds, and why a plan looks as it
does. Both give tables, which notebooks draw."""

from __future__ import annotations

import builtins
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Union

from . import _pantala as _core
from ._compile import CompiledPlan, PathLike, Report
from ._graph import Graph
from ._session import Session
from ._tables import table
from ._trainer import Trainer
from ._weights import Weights
from .errors import TypeError, fail
from .zoo import Model, model as zoo_model, preset_names


@dataclass(frozen=True)
class Table:
    """Rows under heads."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def __repr__(self) -> str:
        cells = [[str(cell) for cell in row] for row in (self.heads, *map(_rounded, self.rows))]
        widths = [max(len(row[k]) for row in cells) for k in range(len(self.heads))]
        lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths)).rstrip() for row in cells]
        return "\n".join([self.caption, *lines])

    def _repr_html_(self) -> str:
        return table(self.heads, self.rows, self.caption)


@dataclass(frozen=True)
class Tables:
    """Several of them; `tables["kernels"]` is one."""

    tables: Sequence[Table]

    def __getitem__(self, caption: str) -> Table:
        return next(entry for entry in self.tables if entry.caption == caption)

    def __repr__(self) -> str:
        return "\n\n".join(map(repr, self.tables))

    def _repr_html_(self) -> str:
        return "".join(entry._repr_html_() for entry in self.tables)


def _rounded(row: Sequence[Any]) -> list[Any]:
    return [f"{cell:.4g}" if isinstance(cell, float) else cell for cell in row]


Inspected = Union[Graph, Model, Weights, Session, Trainer, PathLike]


def inspect(what: Inspected) -> Tables:
    """What something holds: a graph, a model or the name of one, weights, a session or trainer, a
    file of weights or an ONNX file.

    >>> import pantala as pn
    >>> pn.inspect(pn.zoo.mlp(4, 3, (2,), 2).graph)["outputs"]
    outputs
    name    dtype  shape
    logits  f32    (4, 2)
    loss    f32    ()
    """
    if isinstance(what, Trainer):
        what = what.session
    if isinstance(what, Session):
        return _of_session(what)
    if isinstance(what, Weights):
        return Tables([_of_weights(what)])
    if isinstance(what, Model):
        what = what.graph
    if isinstance(what, Graph):
        return _of_graph(what)
    return _of_path(what)


def _of_path(what: Any) -> Tables:
    try:
        path = os.fspath(what)
    except _BuiltinTypeError:
        raise fail(TypeError, f"a {type(what).__name__} cannot be inspected") from None
    if path in preset_names():
        return _of_graph(zoo_model(path).graph)
    if path.endswith(".onnx"):
        return _of_onnx(path)
    return Tables([_of_weights(Weights.open(path))])


def _of_graph(graph: Graph) -> Tables:
    heads = ("name", "dtype", "shape")
    kinds: list[Table] = []
    for kind in ("input", "parameter", "state", "scalar"):
        leaves = [(e.name, e.value.dtype.value, e.value.shape) for e in graph.leaves(kind)]
        if leaves:
            kinds.append(Table(f"{kind}s", heads, leaves))
    outputs = [(name, value.dtype.value, value.shape) for name, value in graph.outputs.items()]
    return Tables([*kinds, Table("outputs", heads, outputs)])


def _of_weights(weights: Weights) -> Table:
    rows = [(name, weights.type(name)[0].value, weights.type(name)[1]) for name in weights]
    return Table("tensors", ("name", "dtype", "shape"), rows)


def _of_onnx(path: str) -> Tables:
    summary = _core.onnx_summary(path)
    operators = sorted(summary["operators"].items(), key=lambda entry: -entry[1])
    return Tables(
        [
            Table("inputs", ("type",), [(text,) for text in summary["inputs"]]),
            Table("outputs", ("type",), [(text,) for text in summary["outputs"]]),
            Table("operators", ("name", "nodes"), operators),
            Table("tensors", ("name", "dtype", "shape"), summary["tensors"]),
        ]
    )


def _of_session(session: Session) -> Tables:
    inputs = [(name, kind.dtype.value, kind.shape) for name, kind in session.inputs.items()]
    memory = [(name, bytes_ / 1e6) for name, bytes_ in session.memory.items()]
    return Tables(
        [
            Table("inputs", ("name", "dtype", "shape"), inputs),
            Table("memory", ("what", "MB"), memory),
            Table("scalars", ("name", "value"), list(session.scalars.items())),
            _of_weights(session.weights()),
        ]
    )


def explain(what: CompiledPlan | Session | Trainer | Report) -> Tables:
    """How a plan came about: what the compiler took for equal, which graphs it weighed, and the
    kernels of the one that it chose.

    >>> import pantala as pn
    >>> model = pn.zoo.mlp(4, 3, (2,), 2)
    >>> tables = pn.explain(pn.compile(model.graph, model.loss, optimizer=pn.optim.sgd(0.1)))
    >>> [entry.caption for entry in tables.tables]
    ['stages', 'rules', 'candidates', 'kernels']
    """
    if isinstance(what, Trainer):
        what = what.session
    report = what if isinstance(what, Report) else what.report
    if report is None:
        raise fail(TypeError, "a plan from a file has no report")
    values = report.as_dict()

    def rows(key: str, names: Sequence[str]) -> list[list[Any]]:
        return [[entry.get(name, "") for name in names] for entry in values.get(key, [])]

    rules = [row for row in rows("rules", ("name", "matches", "count", "reached")) if row[1]]
    weighed = ("name", "chosen", "predicted_us", "launches", "peak_bytes")
    kernels = ("name", "layers", "ops", "predicted_us", "flops")
    return Tables(
        [
            Table("stages", ("stage", "ms"), rows("stages", ("name", "milliseconds"))),
            Table("rules", ("rule", "fits", "new", "in the chosen graph"), rules),
            Table("candidates", weighed, rows("candidates", weighed)),
            Table("kernels", kernels, rows("launches", kernels)),
        ]
    )


_BuiltinTypeError = builtins.TypeError
