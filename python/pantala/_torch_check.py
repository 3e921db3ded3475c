"""What PyTorch's exporter loses of a module without a word: gradients that the module cuts off or makes
itself, buffers that forward() changes, and branches that depend on the batch size. Here it is kept, or
told."""

from __future__ import annotations

import contextlib
import inspect
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_LEAST_BATCH = 2  # of the examples


# --- gradients that are cut off


def cutting(forward: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, in which whatever is computed under torch.no_grad() is detached: an exported
    program has the computation, but does not know that no gradient passes it."""
    import torch
    from torch.overrides import TorchFunctionMode
    from torch.utils import _pytree as pytree

    class Detaching(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            made = func(*args, **(kwargs or {}))
            return made if torch.is_grad_enabled() else pytree.tree_map(_detached, made)

    def called(*args: Any, **kwargs: Any) -> Any:
        with _unsaved(), Detaching():
            return forward(*args, **kwargs)

    return called


@contextlib.contextmanager
def _unsaved() -> Iterator[None]:
    """What a checkpoint (torch.utils.checkpoint) would compute without gradients, and again with them, is
    computed as it stands."""
    from torch.utils.checkpoint import CheckpointFunction

    CheckpointFunction.apply = staticmethod(lambda function, _, *inputs: function(*inputs))
    try:
        yield
    finally:
        del CheckpointFunction.apply


def _detached(value: Any) -> Any:
    import torch

    return value.detach() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


# --- gradients of the module's own


class Gradients:
    """What a run of forward() in PyTorch tells, which leaves the module as it is.

    lines: one for each gradient that the module makes or changes itself, by hooks and functions of
        torch.autograd
    reached: the names of the parameters that get a gradient; all of them where the run fails
    changed: the buffers that it has changed
    """

    def __init__(self, module: Any, inputs: Mapping[str, Any], outputs: Callable[[Any], Any]) -> None:
        """`outputs` picks what the loss reads of what forward() gives."""
        run = _Run(module, inputs, outputs)
        self.lines = [*_hooks(module), *run.lines]
        parameters = dict(module.named_parameters())
        self.reached = {name for name, p in parameters.items() if run.failed or id(p) in run.reached}
        self.changed = run.changed


def _hooks(module: Any) -> list[str]:
    lines = [
        f"{name}: there is a hook on its gradient"
        for name, parameter in module.named_parameters()
        if parameter._backward_hooks or getattr(parameter, "_post_accumulate_grad_hooks", None)
    ]
    return lines + [
        f"{_called(name, part)}: there is a hook on its gradients"
        for name, part in module.named_modules()
        if part._backward_hooks or part._backward_pre_hooks
    ]


def _called(name: str, part: Any) -> str:
    return name or type(part).__name__


class _Run:
    """One run, in which the functions of torch.autograd belong to the innermost submodule that has called
    them."""

    def __init__(self, module: Any, inputs: Mapping[str, Any], outputs: Callable[[Any], Any]) -> None:
        self.lines: list[str] = []
        self.reached: set[int] = set()
        self.changed: list[str] = []
        self.failed = False
        self._seen: dict[int, Any] = {}  # keeps the nodes, so that no other has their numbers
        self._inside: list[str] = []
        handles = []
        for name, part in module.named_modules():
            handles += [part.register_forward_pre_hook(self._entered(_called(name, part)), with_kwargs=True)]
            handles += [part.register_forward_hook(self._left)]
        try:
            self._run(module, inputs, outputs)
        except Exception:  # the exporter says what is wrong with it
            self.failed = True
        finally:
            for handle in handles:
                handle.remove()

    def _run(self, module: Any, inputs: Mapping[str, Any], outputs: Callable[[Any], Any]) -> None:
        import torch

        buffers = {name: buffer.clone() for name, buffer in module.named_buffers()}
        register, lines = torch.Tensor.register_hook, self.lines

        def registered(tensor: Any, hook: Any) -> Any:
            caller = sys._getframe(1)
            place = f"{caller.f_code.co_filename.rsplit('/', 1)[-1]}:{caller.f_lineno}"
            lines.append(f"there is a hook on a gradient [{place}]")
            return register(tensor, hook)

        torch.Tensor.register_hook = registered
        try:
            with torch.random.fork_rng(devices=[]), torch.enable_grad(), _unsaved():
                made = torch.func.functional_call(module, buffers, (), dict(inputs))
            kept = dict(module.named_buffers())
            self.changed = [name for name, buffer in buffers.items() if not torch.equal(buffer, kept[name])]
            self._seen.clear()
            self.reached = {id(node.variable) for node in self._new_nodes(outputs(made)) if hasattr(node, "variable")}
        finally:
            torch.Tensor.register_hook = register

    def _entered(self, name: str) -> Callable[..., None]:
        def entered(_: Any, inputs: Any, named: Any) -> None:
            self._look((inputs, named))
            self._inside.append(name)

        return entered

    def _left(self, _: Any, __: Any, made: Any) -> None:
        self._look(made)
        self._inside.pop()

    def _look(self, made: Any) -> None:
        for node in self._new_nodes(made):
            function = getattr(type(node), "_forward_cls", None)
            if function is not None and not function.__module__.startswith("torch."):
                place = f"{self._inside[-1] if self._inside else ''}{_line(function)}"
                self.lines.append(f"{function.__name__}: a function with a gradient of its own [{place}]")

    def _new_nodes(self, made: Any) -> Iterator[Any]:
        from torch.utils import _pytree as pytree

        waiting = [value.grad_fn for value in pytree.tree_leaves(made) if getattr(value, "grad_fn", None)]
        while waiting:
            node = waiting.pop()
            if node is None or id(node) in self._seen:
                continue
            self._seen[id(node)] = node
            waiting.extend(behind for behind, _ in node.next_functions)
            yield node


def _line(function: type) -> str:
    try:
        _, line = inspect.getsourcelines(function)
        return f" ({(inspect.getsourcefile(function) or '').rsplit('/', 1)[-1]}:{line})"
    except (OSError, TypeError):
        return ""


# --- what an exported program says


def changed_buffers(program: Any) -> dict[str, str]:
    """The buffers that forward() changes, by name, with the trace of the line that does it."""
    exported = program.exported_program
    changed = exported.graph_signature.buffers_to_mutate
    traces = {node.name: node.meta.get("stack_trace") or "" for node in exported.graph.nodes}
    return {buffer: traces.get(node, "") for node, buffer in changed.items()}


def is_for_any_batch(program: Any) -> bool:
    """Whether the file computes what the module does for all batch sizes: it has none that was taken for
    a constant, and no branch was chosen by it."""
    inputs = program.model_proto.graph.input
    sized = [value.type.tensor_type.shape.dim for value in inputs]
    if not all(dims[0].HasField("dim_param") for dims in sized if len(dims)):
        return False
    exported = program.exported_program
    ranges = exported.range_constraints.values()
    if any(r.lower > _LEAST_BATCH or not math.isinf(r.upper) for r in ranges):
        return False
    values = (node.meta.get("val") for node in exported.graph.nodes)
    modes = (getattr(value, "fake_mode", None) for value in values)
    shapes = next((mode.shape_env for mode in modes if mode is not None), None)
    return shapes is not None and not shapes.guards and not any(shapes.deferred_runtime_asserts.values())
