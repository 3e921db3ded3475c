"""ONNX files, in and out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
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


def export_onnx(
    graph: Graph,
    weights: Weights | Mapping[str, Any],
    path: PathLike,
    *,
    opset: int = 17,
    outputs: Sequence[str] = (),
    verify: bool = True,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Writes the outputs of a graph, with the weights of a session. The file is run and compared
    with the graph before it gets its name."""
    given = weights if isinstance(weights, Weights) else Weights(weights)
    options: dict[str, Any] = {
        "opset": opset,
        "outputs": list(outputs),
        "verify": verify,
        "metadata": list((metadata or {}).items()),
    }
    _core.export_onnx(graph._core, given._core, os.fspath(path), options)
