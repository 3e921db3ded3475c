"""What of a module cannot be taken, told in the module's own words: which submodule, and at which line
of which file."""

from __future__ import annotations

import builtins
import inspect
import re
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from ._torch_file import metadata, scopes
from .errors import UnsupportedError, fail

_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
_DOMAIN = "pantala.absent"  # of what ONNX has no operator for


class ExportError(Exception):
    """PyTorch's exporter has failed, for its first reason."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


def refusal(module: Any, lines: list[str]) -> UnsupportedError:
    """An exception with a line for each thing that is wrong."""
    told = "\n  ".join(lines)
    count = "" if len(lines) == 1 else f" ({len(lines)} reasons)"
    return fail(UnsupportedError, f"{type(module).__name__} cannot be taken{count}:\n  {told}")


# --- what the exporter cannot write


def stand_ins(exported: Any, inputs: Mapping[str, Any]) -> dict[Any, Callable[..., Any]]:
    """For each call that ONNX has no operator for a function that writes it as one of its own."""
    try:
        counts = _untranslated(exported, inputs)
        return {target: _stand_in(str(target), count) for target, count in counts.items()}
    except Exception:  # the exporter's inner parts are not promised to stay
        return {}


def _untranslated(exported: Any, inputs: Mapping[str, Any]) -> dict[Any, int]:
    """How many results each of them has."""
    import torch
    from torch.onnx._internal.exporter import _core as exporter
    from torch.onnx._internal.exporter import _dispatching, _registration

    registry = _registration.ONNXRegistry.from_torchlib()
    program = torch.export.export(exported, (), dict(inputs), strict=False)
    program = exporter._prepare_exported_program_for_export(program, registry=registry)
    found = {}
    for node in program.graph.nodes:
        if node.op != "call_function" or not hasattr(node.target, "overloadpacket"):
            continue
        function, _ = _dispatching.dispatch(node, registry)
        if function is None:
            value = node.meta.get("val")
            found[node.target] = len(value) if isinstance(value, (tuple, list)) else 1
    return found


def _stand_in(name: str, count: int) -> Callable[..., Any]:
    def written(*args: Any, **_: Any) -> Any:
        import onnx_ir
        import onnxscript
        from torch.onnx._internal.exporter import _tensors

        recorder = onnxscript.evaluator.default()
        given = [value for value in args if isinstance(value, onnx_ir.Value)]
        made = [_tensors.SymbolicTensor(opset=recorder.opset) for _ in range(count)]
        recorder.nodes.append(onnx_ir.Node(_DOMAIN, name, given, outputs=made))
        return made[0] if count == 1 else tuple(made)

    return written


def export_trouble(module: Any, error: Exception) -> str:
    """Why a module cannot be exported at all: the exporter stops at the first reason."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip()
    told = [line.strip() for line in text.split("\n") if "Error'>" in line or "Exception'>" in line]
    told += [line for line in text.split("\n") if "data-dependent" in line]
    where = _place_in(module, text) or _place_in(module, "".join(traceback.format_exception(error)))
    reason = re.sub(r"^<class '[^']*'>: ", "", (told or text.split("\n"))[0])
    return f"PyTorch cannot export it: {reason}" + (f" [{where}]" if where else "")


def _place_in(module: Any, text: str) -> str:
    """Of the innermost frame that is in the code of a submodule."""
    parts = list(module.named_modules())
    for file, line, _ in reversed(_FRAME.findall(text)):
        for name, part in reversed(parts):
            try:
                lines, first = inspect.getsourcelines(type(part))
            except (OSError, builtins.TypeError):
                continue
            if inspect.getsourcefile(type(part)) == file and first <= int(line) < first + len(lines):
                return _where([(name,)], f'File "{file}", line {line}, in forward')
    return ""


# --- what cannot be read of a file


def refused_nodes(file: bytes, error: Exception) -> list[str]:
    """The importer's message, a line for each node, with a place for each that it names."""
    import onnx

    model = onnx.load_model_from_string(file)
    places = {name: _place(node) for node in model.graph.node for name in (node.name, *node.output)}
    lines = str(error).split("\n")
    return [_with_place(_named(line.strip()), places) for line in lines[1:] or lines]


def _named(line: str) -> str:
    """A call that the exporter could not write, told as such."""
    return line.replace(f"operators of '{_DOMAIN}' are not read", "there is no such operator in ONNX")


def told_place(module: Any, name: str, trace: str) -> str:
    """" [layer1 (net.py:41)]" of a buffer's name and the trace of what changes it."""
    owner = name.rpartition(".")[0] or type(module).__name__
    return f" [{_where([(owner,)], trace)}]"


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
    for name in sorted(filter(None, places), key=len, reverse=True):
        if places[name] and re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", line):
            return f"{line} [{places[name]}]"
    return line
