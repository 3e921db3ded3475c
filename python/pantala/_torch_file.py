"""What the files of PyTorch's newer exporter tell of a module beside its nodes, and what of them is
made to suit."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Container
from typing import Any


def metadata(node: Any) -> dict[str, str]:
    return {entry.key: entry.value for entry in node.metadata_props}


def scopes(node: Any) -> list[str]:
    """The submodules that a node belongs to, from the outer ones in: ["layer1", "layer1.0.bn1"]. A
    second use of a submodule has the name of the first."""
    try:
        names = ast.literal_eval(metadata(node).get("pkg.torch.onnx.name_scopes", "[]"))[:-1]
    except (ValueError, SyntaxError):
        return []
    return [name.split("@")[0] for name in names if name]


def counters(model: Any, state: Container[str]) -> dict[str, int]:
    """The counters of the batch norms that are in training mode, and how often a step uses each."""
    uses: Counter[str] = Counter()
    for node in model.graph.node:
        call = metadata(node).get("pkg.torch.onnx.fx_node", "")
        if node.op_type == "BatchNormalization" and "batch_norm_legit_no_training" not in call:
            uses.update(f"{scope}.num_batches_tracked" for scope in scopes(node)[-1:])
    return {name: count for name, count in uses.items() if name in state}


def make_constants(model: Any, is_kept: Callable[[str, Any], bool]) -> None:
    """Floating initialisers become constants, all but those that are to be kept."""
    import onnx

    kept, nodes = [], []
    for tensor in model.graph.initializer:
        array = onnx.numpy_helper.to_array(tensor)
        if array.dtype.kind != "f" or is_kept(tensor.name, array):
            kept.append(tensor)
        else:
            nodes.append(onnx.helper.make_node("Constant", [], [tensor.name], value=tensor))
    if not nodes:
        return
    kept, nodes = [_copy(t) for t in kept], [*nodes, *(_copy(n) for n in model.graph.node)]
    del model.graph.initializer[:], model.graph.node[:]
    model.graph.initializer.extend(kept)
    model.graph.node.extend(nodes)


def _copy(message: Any) -> Any:
    made = type(message)()
    made.CopyFrom(message)
    return made
