"""ONNX files, in and out."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import _pantala as _core
from ._graph import Graph
from ._types import literal
from ._weights import PathLike, Weights


@dataclass(frozen=True)
class OnnxModel:
    """A file as a graph, whose inputs and outputs have the file's names, and its weights. `warnings`
    tells what would not be trained as PyTorch trains the network."""

    graph: Graph
    weights: Weights
    name: str
    opset: int
    warnings: list[str]


def load_onnx(
    file: PathLike | bytes,
    *,
    sizes: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    any_batch: bool = False,
    bind: Mapping[str, Any] | None = None,
    trainable: bool = True,
    training: bool = False,
    as_exported: bool = False,
    evaluation: bool = False,
    name: str = "<bytes>",
) -> OnnxModel:
    """Reads a file, or its bytes, as a graph that can be trained.

    sizes: of symbolic dimensions, by their names
    shapes: of whole inputs
    any_batch: the first size of an input in `shapes` may differ from the file's
    bind: inputs that become constants, with their values
    trainable: False: weights are constants
    training: batch norm with the statistics of the batch, dropout active
    as_exported: with `training`: layers that the file has in evaluation mode stay so
    evaluation: batch norm with running statistics, no dropout, whatever the file says
    """
    options: dict[str, Any] = {
        "sizes": dict(sizes or {}),
        "shapes": {key: list(shape) for key, shape in (shapes or {}).items()},
        "any_batch": any_batch,
        "bind": {key: literal(value) for key, value in (bind or {}).items()},
        "trainable": trainable,
        "training": training,
        "as_exported": as_exported,
        "evaluation": evaluation,
    }
    if isinstance(file, bytes):
        made = _core.parse_onnx(file, name, options)
    else:
        made = _core.load_onnx(os.fspath(file), options)
    weights = Weights(_of=made.weights)
    return OnnxModel(Graph(_of=made.graph), weights, made.name, made.opset, made.warnings)


@dataclass(frozen=True)
class ExportedBatch:
    """Whether a file takes any batch size, and the reason if it does not: it is that of a batch of 1
    then."""

    symbolic: bool
    reason: str = ""


def export_onnx(
    graph: Graph | Callable[[int], Graph],
    weights: Weights | Mapping[str, Any],
    path: PathLike,
    *,
    opset: int = 17,
    outputs: Sequence[str] = (),
    verify: bool = True,
    max_inline_bytes: int = 3 << 29,
    metadata: Mapping[str, str] | None = None,
) -> ExportedBatch:
    """Writes the outputs of a graph, with the weights of a session. The file is run and compared
    with the graph before it gets its name. A function that makes the graph for a batch size gives a
    file for any.

    outputs: all but "loss" and what depends on the labels unless they are named
    max_inline_bytes: weights of more bytes go beside the file, as NAME.onnx.data

    >>> import pathlib, tempfile
    >>> import pantala as pn
    >>> def graph(batch):
    ...     g = pn.Graph()
    ...     _ = g.output("y", pn.nn.linear("fc", g.input("x", (batch, 3)), 2))
    ...     return g
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "fc.onnx"
    >>> weights = pn.build_inference_session(graph(1)).weights()
    >>> pn.export_onnx(graph, weights, file).symbolic
    True
    >>> pn.load_onnx(file, sizes={"batch": 5}).graph.output("y")
    Tensor(f32[5,2])
    """
    given = weights if isinstance(weights, Weights) else Weights(weights)
    options: dict[str, Any] = {
        "opset": opset,
        "outputs": list(outputs),
        "verify": verify,
        "max_inline_bytes": max_inline_bytes,
        "metadata": list((metadata or {}).items()),
    }
    file = os.fspath(path)
    if isinstance(graph, Graph):
        _core.export_onnx(graph._core, given._core, file, options)
        return ExportedBatch(False, "it is the file of one graph")

    def made(batch: int) -> _core.Graph:
        return graph(batch)._core

    return ExportedBatch(*_core.export_onnx_batch(made, given._core, file, options))
