"""A module of PyTorch as graphs of any batch size, through PyTorch's ONNX exporter: it keeps the names
of parameters, what each node was made of, and training mode (see docs/onnx.md)."""

from __future__ import annotations

import builtins
import contextlib
import copy
import inspect
import logging
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ._graph import Graph
from ._onnx import OnnxModel, load_onnx
from ._session import Session
from ._torch_report import ExportError, export_trouble, refusal, refused_nodes, stand_ins, told_place
from ._torch_check import Gradients, changed_buffers, cutting, is_for_any_batch
from ._torch_file import counters, make_constants
from ._torch_sequences import without_sequences
from ._types import DType, as_array
from .errors import TypeError, UnsupportedError, fail

_ANY = 0  # the key of the file for all batch sizes


class Exported:
    """The module's graph for any batch size, and its weights."""

    def __init__(self, module: Any, example_inputs: Any, reads_all: bool = False) -> None:
        """`reads_all`: the loss reads all outputs, and not the first alone."""
        torch = _torch()
        if not isinstance(module, torch.nn.Module):
            raise fail(TypeError, f"from_torch takes a torch.nn.Module, not a {type(module).__name__}")
        if isinstance(module, torch.jit.ScriptModule):
            raise fail(UnsupportedError, "a module of torch.jit cannot be taken; give the module that it was made of")
        self.module: Any = module
        self._check_places()
        self._inputs = _by_name(module, example_inputs)
        self.input_names = list(self._inputs)
        self.batch = self._batch()
        with _training(module):
            self._gradients = Gradients(module, self._inputs, _all_outputs if reads_all else _first_output)
        self._picked = _Picked(module, self._inputs)
        self.output_shapes = self._picked.shapes
        self._files: dict[tuple[int, str], bytes] = {}
        self._any_batch = {"training": True, "evaluation": True}
        self._counters: dict[str, int] = {}
        self._numbers: list[str] = []
        self._changed: dict[str, dict[str, str]] = {}  # buffers, by phases
        self._models: dict[tuple[int, str], OnnxModel] = {}
        self._first = self._model(self.batch, "training")
        self.warnings = self._first.warnings

    # --- what is given

    def _check_places(self) -> None:
        tensors = [*self.module.named_parameters(), *self.module.named_buffers()]
        elsewhere = [name for name, tensor in tensors if tensor.device.type != "cpu"]
        if elsewhere:
            raise fail(TypeError, f"the module is not on the CPU: {_listed(elsewhere)}")

    def _batch(self) -> int:
        sizes = {value.shape[0] for value in self._inputs.values() if value.ndim}
        if len(sizes) != 1:
            raise fail(TypeError, f"the inputs have batches of {sorted(sizes)}; they must agree")
        (batch,) = sizes
        if batch < 2:
            raise fail(
                TypeError,
                "the example inputs need a batch of 2 or more: the exporter takes a size of 1 for "
                "a constant",
            )
        return int(batch)

    def _single_numbers(self, model: Any) -> list[str]:
        """Parameters that would be trained, but are constants of the file as single numbers are."""
        trained = {name for name, p in self.module.named_parameters() if p.requires_grad and p.ndim == 0}
        names = [tensor.name for tensor in model.graph.initializer if tensor.name in trained]
        return [f"{name}: a single number is not trained; give it the shape [1]" for name in names]

    # --- graphs

    def graph(self, batch: int, phase: str) -> Graph:
        """A copy for this batch size, in "training" or "evaluation"."""
        graph = self._model(batch, phase).graph.copy()
        if phase == "training":
            for name, uses in self._counters.items():
                counter = graph.state(name, (), dtype=DType.i64)
                graph.update(counter, counter + uses)
        return graph

    def check(self, phase: str) -> None:
        """Refuses now what could not be taken later."""
        self._model(self.batch, phase)

    def _model(self, batch: int, phase: str) -> OnnxModel:
        key = batch, phase
        if key not in self._models:
            self._models[key] = self._read(batch, phase)
        return self._models[key]

    def _read(self, batch: int, phase: str) -> OnnxModel:
        try:
            file = self._file(batch, phase)
            made = self._loaded(file, batch, phase)
        except (ExportError, UnsupportedError) as error:
            raise self._refusal(phase, error) from None
        lost = self._lost(made.graph, phase)
        if lost:
            raise refusal(self.module, lost)
        return made

    def _lost(self, graph: Graph | None, phase: str) -> list[str]:
        """What the file does not have of the module; without a graph nothing of its buffers."""
        changed = [] if graph is None else self._changed_otherwise(graph, phase)
        return [*self._numbers, *self._gradients.lines, *changed] if phase == "training" else changed

    def _changed_otherwise(self, graph: Graph, phase: str) -> list[str]:
        """Buffers that forward() changes and the graph does not."""
        updated = [leaf for leaf, _ in graph.updates]
        states = [leaf for leaf in graph.leaves("state") if any(leaf.value.same(other) for other in updated)]
        followed = {*self._counters, *(leaf.name for leaf in states)}
        return [
            f"{name}: forward() changes this buffer, and only those of batch norms are followed{told_place(self.module, name, trace)}"
            for name, trace in self._changed_in(phase).items()
            if name not in followed
        ]

    def _loaded(self, file: bytes, batch: int, phase: str) -> OnnxModel:
        shapes = {
            name: [batch, *value.shape[1:]] for name, value in self._inputs.items() if value.ndim
        }
        training = phase == "training"
        return load_onnx(
            file,
            shapes=shapes,
            name=type(self.module).__name__,
            training=training,
            as_exported=training,
            evaluation=not training,
        )

    def _changed_in(self, phase: str) -> dict[str, str]:
        """By name, with a trace where there is one: some changes are seen in PyTorch's own run alone."""
        seen = self._gradients.changed if phase == "training" else ()
        return {**dict.fromkeys(seen, ""), **self._changed[phase]}

    def _refusal(self, phase: str, error: Exception) -> UnsupportedError:
        """All that is wrong: what cannot be written stands for itself in a file of fixed sizes, so
        that the rest is read, too."""
        with self._mode(phase), _quiet():
            absent = stand_ins(self._picked.module, self._inputs)
        try:
            file = self._export(self._inputs, phase, False, absent)
        except ExportError as first:
            return refusal(self.module, [export_trouble(self.module, first.cause)])
        try:
            self._loaded(file, self.batch, phase)
        except UnsupportedError as complete:
            error = complete
        return refusal(self.module, [*refused_nodes(file, error), *self._lost(None, phase)])

    def _file(self, batch: int, phase: str) -> bytes:
        """One file for all batch sizes where the module can be exported so, else one for each."""
        if self._any_batch[phase] and (_ANY, phase) not in self._files:
            try:
                self._files[_ANY, phase] = self._export(self._inputs, phase, True)
            except ExportError:  # the export of one size says what is really wrong
                self._any_batch[phase] = False
        if self._any_batch[phase]:
            return self._files[_ANY, phase]
        if (batch, phase) not in self._files:
            inputs = _of_batch(self._inputs, batch)
            self._files[batch, phase] = self._export(inputs, phase, False)
        return self._files[batch, phase]

    def _mode(self, phase: str) -> Any:
        return _training(self.module) if phase == "training" else _evaluating(self.module)

    def _export(
        self,
        inputs: Mapping[str, Any],
        phase: str,
        any_batch: bool,
        translations: Mapping[Any, Any] | None = None,
    ) -> bytes:
        torch = _torch()
        dynamic = None
        if any_batch:
            size = torch.export.Dim("batch")
            dynamic = {name: {0: size} if value.ndim else {} for name, value in inputs.items()}
        with self._mode(phase), _quiet():
            try:
                program = torch.onnx.export(
                    self._picked.module,
                    (),
                    kwargs=dict(inputs),
                    dynamo=True,
                    optimize=False,
                    dynamic_shapes=dynamic,
                    output_names=self._picked.names,
                    verbose=False,
                    custom_translation_table=dict(translations or {}),
                )
                model = program.model_proto
            except Exception as error:  # of many kinds, which tell of the first reason alone
                raise ExportError(error) from None
        if any_batch and not _holds_for_any_batch(program):
            raise ExportError(RuntimeError("it depends on the size of the batch"))
        self._changed[phase] = changed_buffers(program)
        if phase == "training":
            self._counters = counters(model, self.module.state_dict())
            self._numbers = self._single_numbers(model)
        else:
            self._make_constants(model)
        return without_sequences(model)

    def _make_constants(self, model: Any) -> None:
        """What the training does not know has the numbers of the file, and no place in a session."""
        known = {leaf.name for leaf in self._first.graph.leaves()}.intersection(self.module.state_dict())
        weights = self._first.weights
        make_constants(
            model,
            lambda name, value: name in known
            or (name in weights and np.array_equal(weights[name], value)),
        )

    # --- weights

    def frozen_names(self) -> list[str]:
        """What is not trained: parameters that need no gradient or get none, and buffers."""
        owners = _owners(self.module)
        trained = {n for n, p in self.module.named_parameters() if p.requires_grad and n in self._gradients.reached}
        names = [leaf.name for leaf in self._first.graph.leaves("parameter")]
        return [name for name in names if not trained.intersection(owners.get(name, [name]))]

    @property
    def file_weights(self) -> Any:
        """All that the exported file holds, also constants that are no part of the module's state."""
        return self._first.weights

    def values(self, session: Session) -> dict[str, Any]:
        """The module's numbers, as the session names them."""
        state = self.module.state_dict()
        named = {name: state[name] for name in state}
        stored = [*session.parameters, *session.states]
        return {name: as_array(named[name]) for name in stored if name in named}

    def state_dict(self, session: Session) -> dict[str, Any]:
        """The module's state with the session's numbers, and its own for what the graph does not
        have."""
        torch = _torch()
        trained = session.weights()
        state = self.module.state_dict()
        owners = _owners(self.module)
        result = {}
        for name, value in state.items():
            source = next((other for other in owners.get(name, [name]) if other in trained), None)
            if source is not None:
                array = np.ascontiguousarray(trained[source])
                result[name] = torch.from_numpy(array).to(value.dtype).reshape(value.shape)
            else:
                result[name] = value.clone()
        return result


class _Picked:
    """The module with a forward() that gives a tuple of tensors only, under the module's own names of
    its outputs; the names of its parameters stay what they are."""

    def __init__(self, module: Any, inputs: Mapping[str, Any]) -> None:
        torch = _torch()
        with torch.no_grad(), _evaluating(module):
            result = _result_of(module, inputs)
        self.names, kept = _tensors(result)
        if not kept:
            raise fail(TypeError, f"forward() gives no tensor but a {type(result).__name__}")
        self.shapes = [tuple(_item(result, key).shape) for key in kept]
        self.module = copy.copy(module)
        forward = module.forward
        uncut = cutting(forward)

        def picked(*args: Any, **kwargs: Any) -> Any:
            made = uncut(*args, **kwargs)
            return tuple(_item(made, key) for key in kept)

        picked.__signature__ = inspect.signature(forward)  # type: ignore[attr-defined]
        self.module.forward = picked


def _result_of(module: Any, inputs: Mapping[str, Any]) -> Any:
    """Of forward() for these inputs; the module's buffers stay what they are."""
    buffers = {name: buffer.clone() for name, buffer in module.named_buffers()}
    return _torch().func.functional_call(module, buffers, (), dict(inputs))


def _holds_for_any_batch(program: Any) -> bool:
    try:
        return is_for_any_batch(program)
    except Exception:  # the exporter's inner parts are not promised to stay; a file for each size is always right
        return False


def _tensors(result: Any) -> tuple[list[str], list[Any]]:
    """Names and keys of the tensors that count: of a model's output with logits these alone."""
    torch = _torch()
    if isinstance(result, torch.Tensor):
        return ["output"], [None]
    if not isinstance(result, (Mapping, list, tuple)):
        return [], []
    entries = list(result.items()) if isinstance(result, Mapping) else list(enumerate(result))
    kept = [key for key, value in entries if isinstance(value, torch.Tensor)]
    if "loss" in kept:
        kept = ["loss"]
    elif "logits" in kept:
        kept = ["logits"]
    return [key if isinstance(key, str) else f"output{key}" for key in kept], kept


def _all_outputs(result: Any) -> list[Any]:
    return [_item(result, key) for key in _tensors(result)[1]]


def _first_output(result: Any) -> list[Any]:
    return _all_outputs(result)[:1]


def _item(result: Any, key: Any) -> Any:
    return result if key is None else result[key]


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise fail(UnsupportedError, "from_torch needs the package torch") from None
    return torch


def _by_name(module: Any, example_inputs: Any) -> dict[str, Any]:
    """The example inputs by the names of forward()."""
    torch = _torch()
    if isinstance(example_inputs, Mapping):
        named = dict(example_inputs)
        parameters = inspect.signature(module.forward).parameters
        any_name = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
        unknown = [name for name in named if name not in parameters and not any_name]
        if unknown:
            raise fail(TypeError, f"forward({', '.join(parameters)}) has no input '{unknown[0]}'")
    else:
        names = [
            name
            for name, parameter in inspect.signature(module.forward).parameters.items()
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        ]
        if len(example_inputs) > len(names):
            told = inspect.signature(module.forward)
            raise fail(
                TypeError,
                f"{len(example_inputs)} inputs for forward{told}; of a wrapped module (torch.compile, DataParallel) "
                "give the one inside, or a dict by names",
            )
        named = dict(zip(names, example_inputs))
    for name, value in named.items():
        if not isinstance(value, torch.Tensor):
            try:
                named[name] = torch.as_tensor(value)
            except (builtins.TypeError, ValueError, RuntimeError) as error:
                raise fail(TypeError, f"the example input '{name}' is no array: {error}") from None
        if named[name].device.type != "cpu":
            raise fail(TypeError, f"the example input '{name}' is not on the CPU")
    return named


def _of_batch(inputs: Mapping[str, Any], batch: int) -> dict[str, Any]:
    """Examples of another batch size: their items again and again."""
    torch = _torch()
    return {
        name: value[torch.arange(batch) % value.shape[0]] if value.ndim else value
        for name, value in inputs.items()
    }


def _owners(module: Any) -> dict[str, list[str]]:
    """For each name of the state all names of the same tensor: tied weights."""
    by_tensor: dict[int, list[str]] = {}
    for name, value in module.state_dict(keep_vars=True).items():
        by_tensor.setdefault(id(value), []).append(name)
    return {name: names for names in by_tensor.values() for name in names}


@contextlib.contextmanager
def _modes(module: Any, change: Any) -> Iterator[None]:
    flags = [(part, part.training) for part in module.modules()]
    change()
    try:
        yield
    finally:
        for part, flag in flags:
            part.training = flag


def _training(module: Any) -> Any:
    """In training mode; submodules of a module that trains already keep their own."""
    return _modes(module, lambda: None if module.training else module.train())


def _evaluating(module: Any) -> Any:
    return _modes(module, module.eval)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """The exporter's remarks are about its own affairs."""
    quiet = ("torch.onnx", "onnxscript", "onnx_ir", "torch._guards", "torch._dynamo", "torch.fx")
    loggers = [logging.getLogger(name) for name in quiet]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels):
            logger.setLevel(level)


def _listed(names: list[str]) -> str:
    return ", ".join(names)
