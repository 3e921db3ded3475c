"""What of a module cannot be taken, told in the module's own words: which submodule, and at which line
of which file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from . import _pantala as _core
from ._torch_file import metadata, scopes
from .errors import UnsupportedError, fail

_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')


def refusal(module: Any, file: bytes, message: str) -> UnsupportedError:
    """The importer's message with a place for each node that it names."""
    import onnx

    model = onnx.load_model_from_string(file)
    places = {node.name: _place(node) for node in model.graph.node if node.name}
    place = _core.place()
    message = message.removeprefix(f"{place}: ")
    lines = [_with_place(line, places) for line in message.split("\n")]
    text = f"{type(module).__name__} cannot be taken: " + "\n".join(lines)
    error = UnsupportedError(f"{place}: {text}" if place else text)
    error.place = place
    return error


def export_refusal(
    module: Any, exported: Any, inputs: Mapping[str, Any], error: Exception
) -> UnsupportedError:
    """What PyTorch's exporter cannot write; all of it, where its parts can be asked."""
    try:
        lines = _without_translation(exported, inputs)
    except Exception:  # the exporter's inner parts are not promised to stay
        lines = []
    told = "\n".join(lines) or _first_line(error)
    return fail(UnsupportedError, f"{type(module).__name__} cannot be exported: {told}")


def _without_translation(exported: Any, inputs: Mapping[str, Any]) -> list[str]:
    import torch
    from torch.onnx._internal.exporter import _core as exporter
    from torch.onnx._internal.exporter import _dispatching, _registration

    registry = _registration.ONNXRegistry.from_torchlib()
    program = torch.export.export(exported, (), dict(inputs), strict=False)
    program = exporter._prepare_exported_program_for_export(program, registry=registry)
    lines = []
    for node in program.graph.nodes:
        if node.op != "call_function" or not hasattr(node.target, "overloadpacket"):
            continue
        function, _ = _dispatching.dispatch(node, registry)
        if function is None:
            where = _where(list((node.meta.get("nn_module_stack") or {}).values()),
                           node.meta.get("stack_trace") or "")
            lines.append(f"  {node.target}: there is no such operator in ONNX [{where}]")
    return [f"{len(lines)} calls cannot be written:", *lines] if lines else []


def _first_line(error: Exception) -> str:
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip()
    told = [line.strip() for line in text.split("\n") if "Error'>" in line or "Exception'>" in line]
    return told[0] if told else text.split("\n")[0]


def _where(stack: list[Any], trace: str) -> str:
    names = [str(entry[0]) for entry in stack if entry and entry[0]]
    frames = _FRAME.findall(trace)
    where = f"{frames[-1][0].rsplit('/', 1)[-1]}:{frames[-1][1]}" if frames else ""
    layer = names[-1] if names else ""
    return f"{layer} ({where})" if layer and where else layer or where


def _place(node: Any) -> str:
    """"layer1.0.conv1 (net.py:41)"; "" where the file does not tell."""
    trace = metadata(node).get("pkg.torch.onnx.stack_trace", "")
    return _where([(name,) for name in scopes(node)], trace)


def _with_place(line: str, places: dict[str, str]) -> str:
    """Names of nodes stand in quotes, or behind the operator."""
    for name in sorted(places, key=len, reverse=True):
        if places[name] and re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", line):
            return f"{line} [{places[name]}]"
    return line
