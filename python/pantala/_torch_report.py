"""What of a module cannot be taken, told in the module's own words: which submodule, and at which line
of which file."""

from __future__ import annotations

import ast
import re
from typing import Any

from . import _pantala as _core
from .errors import UnsupportedError

_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')


def refusal(module: Any, file: bytes, message: str) -> UnsupportedError:
    """The importer's message with a place for each node that it names."""
    import onnx

    model = onnx.load_model_from_string(file)
    places = {node.name: _place(node) for node in model.graph.node if node.name}
    lines = [_with_place(line, places) for line in message.split("\n")]
    place = _core.place()
    text = f"{type(module).__name__} cannot be taken: " + "\n".join(lines)
    error = UnsupportedError(f"{place}: {text}" if place else text)
    error.place = place
    return error


def _place(node: Any) -> str:
    """"layer1.0.conv1 (net.py:41)"; "" where the file does not tell."""
    metadata = {entry.key: entry.value for entry in node.metadata_props}
    scopes = metadata.get("pkg.torch.onnx.name_scopes", "[]")
    frames = _FRAME.findall(metadata.get("pkg.torch.onnx.stack_trace", ""))
    try:
        names = [name for name in ast.literal_eval(scopes)[:-1] if name]
    except (ValueError, SyntaxError):
        names = []
    where = f"{frames[-1][0].rsplit('/', 1)[-1]}:{frames[-1][1]}" if frames else ""
    layer = names[-1] if names else ""
    return f"{layer} ({where})" if layer and where else layer or where


def _with_place(line: str, places: dict[str, str]) -> str:
    """Names of nodes stand in quotes, or behind the operator."""
    for name in sorted(places, key=len, reverse=True):
        if places[name] and re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", line):
            return f"{line} [{places[name]}]"
    return line
