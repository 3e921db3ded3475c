"""Compilation: options by name, plans and reports."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict, Union

from . import _pantala as _core
from ._graph import Graph, _tensor
from ._optimizer import Optimizer, core_of
from .errors import not_pickled
from ._tensor import Tensor

if TYPE_CHECKING:
    from typing_extensions import Unpack

PathLike = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class ParameterGroup:
    """Parameters whose names fit a pattern (`*` and `?` as in a shell); the first that fits counts."""

    pattern: str
    lr_factor: float = 1
    weight_decay: float | None = None
    frozen: bool = False


class CompileOptions(TypedDict, total=False):
    """How to compile, by name. `pantala/compile.h` of the C++ library explains each.

    device: "cpu"; "vulkan", "vulkan:1" or "vulkan:NAME"; "auto"; "kir", which checks everything
    threads: 0 for as many as the process may use
    target: a class of processors that code is made for; "": the one that this is
    optimize: False: a kernel per op and no rewriting, for debugging
    rewrite: "none", "greedy" or "egraph"
    numerics: "strict" (the same bits), "relaxed" or "fast"
    memory_limit: bytes of temporaries, also as "500M"; what does not fit is computed again
    non_finite: "none", "loss", "gradients" or "watched"
    outputs: the outputs that are wanted; all if there are none
    observe: tensors by name that can be read after a step, with Session.observed
    observe_gradients: all gradients can be read
    accumulation_steps: micro-batches per update
    split_update: gradients can be read and changed before the update
    groups: parameters with rates of their own, or frozen
    clip_norm, clip_value: limits of the gradients
    ema_decay: averages of the weights are kept
    """

    device: str
    threads: int
    target: str
    optimize: bool
    rewrite: str
    numerics: str
    greedy_order: int
    rules_off: Sequence[str]
    memory_limit: int | str
    cost_table: str
    non_finite: str
    outputs: Sequence[str]
    observe: Mapping[str, Tensor]
    observe_gradients: bool
    accumulation_steps: int
    normalize: bool
    split_update: bool
    parameters: Sequence[str]
    groups: Sequence[ParameterGroup]
    kept_statistics: str
    clip_norm: float
    clip_value: float
    ema_decay: float
    gradient_norms: bool
    global_norm: bool


def core_options(options: Mapping[str, Any], optimizer: Optimizer | None) -> dict[str, Any]:
    """As the module takes them."""
    values = {name: value for name, value in options.items() if value is not None}
    if "observe" in values:
        observed = values["observe"].items()
        values["observe"] = [(name, _tensor("observe", value)) for name, value in observed]
    if "groups" in values:
        values["groups"] = [
            (group.pattern, group.lr_factor, group.weight_decay, group.frozen)
            for group in values["groups"]
        ]
    for name in ("rules_off", "outputs", "parameters"):
        if name in values:
            values[name] = list(values[name])
    if optimizer is not None:
        values["optimizer"] = core_of(optimizer)
    return values


class Report:
    """How a compilation went."""

    def __init__(self, core: _core.Report) -> None:
        self._core = core

    @property
    def cached(self) -> bool:
        """Whether the plan was loaded instead of compiled."""
        return self._core.cached

    def as_dict(self) -> dict[str, Any]:
        return json.loads(self._core.json())

    def __str__(self) -> str:
        return self._core.text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from ._tables import report_table

        return report_table(self)


class CompiledPlan:
    """A compiled step, which a session runs and a file can keep."""

    def __init__(
        self, plan: _core.CompiledPlan, result: _core.CompileResult | None = None
    ) -> None:
        self._core = plan
        self._result = result

    @property
    def report(self) -> Report | None:
        """Of the compilation; None for a plan from a file."""
        return None if self._result is None else Report(self._result.report)

    @property
    def inputs(self) -> list[str]:
        return self._core.inputs

    @property
    def outputs(self) -> list[str]:
        return self._core.outputs

    @property
    def parameters(self) -> list[str]:
        return self._core.parameters

    @property
    def states(self) -> list[str]:
        return self._core.states

    @property
    def launches(self) -> int:
        return self._core.launches

    @property
    def peak_bytes(self) -> int:
        """The most that temporaries take at a time."""
        return self._core.peak_bytes

    @property
    def has_loss(self) -> bool:
        return self._core.has_loss

    def save(self, path: PathLike) -> None:
        self._core.save(os.fspath(path))

    def __reduce__(self) -> Any:
        raise not_pickled("a plan", "save() writes it into a file, and load_plan() reads it")

    def __repr__(self) -> str:
        return f"CompiledPlan({self.launches} launches, {self.peak_bytes / 1e6:.1f} MB of temporaries)"


def compile(
    graph: Graph,
    loss: Tensor | None = None,
    *,
    optimizer: Optimizer | None = None,
    cache: PathLike = "",
    **options: Unpack[CompileOptions],
) -> CompiledPlan:
    """Compiles a step: of a loss the whole training step, with gradients and the optimizer's update;
    otherwise the graph's outputs and updates as they are. `cache` is a file for the plan; what it
    takes else are the CompileOptions.

    >>> import pantala as pn
    >>> g = pn.Graph()
    >>> _ = g.output("y", pn.relu(g.input("x", 8)))
    >>> pn.compile(g).outputs
    ['y']
    """
    made = _core.compile(
        graph._core,
        None if loss is None else _tensor("compile", loss),
        core_options(options, optimizer),
        os.fspath(cache),
    )
    return CompiledPlan(made.plan, made)


@dataclass(frozen=True)
class TrainingStep:
    """The training step as one graph, with the loss and, by parameter, the gradients before clipping."""

    graph: Graph
    loss: Tensor
    gradients: dict[str, Tensor]


def make_training_step(
    graph: Graph,
    loss: Tensor,
    optimizer: Optimizer | None = None,
    **options: Unpack[CompileOptions],
) -> TrainingStep:
    """What compile() makes of a loss before it is compiled: the graph with gradients and the update.
    Of the options those of the training step count (groups, clip_norm, ema_decay, ...).

    >>> import pantala as pn
    >>> g = pn.Graph()
    >>> loss = (g.parameter("w", 3) * g.input("x", 3)).sum()
    >>> step = pn.make_training_step(g, loss, pn.optim.sgd(0.1))
    >>> step.gradients["w"].shape, [leaf.name for leaf in step.graph.leaves("scalar")]
    ((3,), ['optim.lr', 'optim.weight_decay'])
    """
    made, value, gradients = _core.make_training_step(
        graph._core, _tensor("make_training_step", loss), core_options(options, optimizer)
    )
    return TrainingStep(
        Graph(_of=made), Tensor(value), {name: Tensor(g) for name, g in gradients.items()}
    )


def load_plan(path: PathLike) -> CompiledPlan:
    """A plan that CompiledPlan.save wrote, for this version and machine."""
    return CompiledPlan(_core.load_plan(os.fspath(path)))
