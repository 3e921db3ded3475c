"""Sequences in exported files: without its optimizations PyTorch's exporter writes split() as a list
of tensors of which it then takes elements. Here each becomes one `Split` with several results."""

from __future__ import annotations

from typing import Any

import numpy as np


def without_sequences(model: Any) -> bytes:
    """The bytes of the file with every list of pieces that is taken apart again replaced."""
    if any(node.op_type == "SplitToSequence" for node in model.graph.node):
        _Rewriting(model.graph).run()
    return bytes(model.SerializeToString())


class _Rewriting:
    def __init__(self, graph: Any) -> None:
        self._graph = graph
        self._constants = _constants(graph)
        values = (*graph.value_info, *graph.input)
        self._shapes = {value.name: value.type.tensor_type.shape.dim for value in values}
        self._pieces: dict[str, list[str]] = {}

    def run(self) -> None:
        import onnx

        nodes = [self._replaced(node) for node in self._graph.node]
        kept = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
        del self._graph.node[:]
        self._graph.node.extend(kept)

    def _replaced(self, node: Any) -> Any:
        """The node itself where it is something else, or not known well enough."""
        import onnx

        made = None
        if node.op_type == "SplitToSequence":
            made = self._split(node)
        elif node.op_type == "SequenceAt" and node.input[0] in self._pieces:
            piece = self._pieces[node.input[0]][int(self._constants[node.input[1]])]
            made = onnx.helper.make_node("Identity", [piece], list(node.output), node.name)
        if made is None:
            return node
        made.metadata_props.extend(node.metadata_props)
        return made

    def _split(self, node: Any) -> Any:
        import onnx

        attributes = {attribute.name: attribute.i for attribute in node.attribute}
        axis = attributes.get("axis", 0)
        sizes = self._sizes(node, axis)
        if not sizes or not attributes.get("keepdims", 1):
            return None
        name = node.output[0]
        self._pieces[name] = [f"{name}.{k}" for k in range(len(sizes))]
        values = onnx.numpy_helper.from_array(np.array(sizes, np.int64), f"{name}.sizes")
        self._graph.initializer.append(values)
        inputs = [node.input[0], values.name]
        return onnx.helper.make_node("Split", inputs, self._pieces[name], node.name, axis=axis)

    def _sizes(self, node: Any, axis: int) -> list[int]:
        """Of the pieces; none where they are not known."""
        if len(node.input) < 2 or node.input[1] not in self._constants:
            return []
        given = self._constants[node.input[1]]
        if given.ndim == 1:
            return [int(size) for size in given]
        shape = self._shapes.get(node.input[0], [])
        if not -len(shape) <= axis < len(shape):
            return []
        whole, piece = int(shape[axis].dim_value), int(given)
        return [min(piece, whole - first) for first in range(0, whole, piece)]


def _constants(graph: Any) -> dict[str, Any]:
    """Small tensors whose values are in the file."""
    import onnx

    small = 1024
    found = {
        t.name: onnx.numpy_helper.to_array(t) for t in graph.initializer if len(t.raw_data) < small
    }
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute and node.attribute[0].name == "value":
            found[node.output[0]] = onnx.numpy_helper.to_array(node.attribute[0].t)
    return found
