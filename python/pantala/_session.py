"""Sessions: compiled plans with their parameters, step after step."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from . import _pantala as _core
from ._compile import CompiledPlan, CompileOptions, PathLike, Report, compile
from ._graph import Graph
from ._optimizer import Optimizer
from ._tensor import Tensor
from ._types import DType, as_array, handed_out
from ._weights import LoadReport, Weights
from .errors import TypeError, fail, not_pickled

if TYPE_CHECKING:
    from typing_extensions import Unpack

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Type:
    """Dtype and shape of a value."""

    dtype: DType
    shape: tuple[int, ...]

    def __repr__(self) -> str:
        return f"{self.dtype.value}[{','.join(map(str, self.shape))}]"


def _type(pair: tuple[str, tuple[int, ...]]) -> Type:
    return Type(DType(pair[0]), pair[1])


class Session:
    """Runs a compiled plan. It owns parameters, optimizer states and counters. It may be used from any
    thread, but from one at a time; while it computes other threads of Python run.

    >>> import numpy as np
    >>> import pantala as pn
    >>> g = pn.Graph()
    >>> x = g.input("x", (4, 2))
    >>> loss = pn.mse_loss(pn.nn.linear("fc", x, 1), g.input("y", (4, 1)))
    >>> session = pn.build_session(g, loss, optimizer=pn.optim.sgd(0.1))
    >>> session.set_input("x", np.ones((4, 2), np.float32))
    >>> session.set_input("y", np.zeros((4, 1), np.float32))
    >>> losses = [session.step() for _ in range(20)]
    >>> losses[-1] < losses[0]
    True
    """

    def __init__(
        self,
        plan: CompiledPlan,
        *,
        device: str = "",
        threads: int = 0,
        seed: int = 0,
        sentinels: bool = False,
    ) -> None:
        options = {"device": device, "threads": threads, "seed": seed, "sentinels": sentinels}
        if plan._result is not None:
            self._core = _core.Session(plan._result, options)
        else:
            self._core = _core.session_of_plan(plan._core, options)

    @classmethod
    def _from(cls, core: _core.Session) -> Session:
        session = cls.__new__(cls)
        session._core = core
        return session

    # --- life

    def close(self) -> None:
        """Gives its memory back now. Not while views of it are there."""
        self._core.close()

    @property
    def is_closed(self) -> bool:
        return self._core.is_closed

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- the main plan

    @property
    def inputs(self) -> dict[str, Type]:
        """By name."""
        return {name: _type(self._core.input_type(name)) for name in self._core.inputs()}

    @property
    def outputs(self) -> list[str]:
        return self._core.outputs()

    def set_input(self, name: str, values: Any) -> None:
        """The values stay until they are set again. Arrays are read where they lie, also tensors of
        torch and whatever speaks DLPack; lists become arrays of the input's type."""
        self._core.set_input(name, self._array(name, values))

    def _array(self, name: str, values: Any) -> Any:
        if isinstance(values, (list, tuple, int, float)):
            return as_array(values, DType(self._core.input_type(name)[0]))
        return as_array(values)

    def step(self, inputs: Mapping[str, Any] | None = None, **more: Any) -> float:
        """One step with these inputs (others keep their values): computes the loss and moves
        parameters, states and counters on. Gives the loss before the update; NaN without one."""
        self._set(inputs, more)
        self._core.step()
        return self._core.loss() if self._has_loss else float("nan")

    def _set(self, inputs: Mapping[str, Any] | None, more: Mapping[str, Any]) -> None:
        if inputs is not None:
            _set_by_name(self, inputs)
        for name, values in more.items():
            self.set_input(name, values)

    @property
    def _has_loss(self) -> bool:
        known = self.__dict__.get("_knows_loss")
        if known is None:
            known = self.__dict__["_knows_loss"] = self._core.compiled().has_loss
        return bool(known)

    def run(self, inputs: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Array]:
        """One step with these inputs; gives all outputs."""
        self._set(inputs, more)
        self._core.step()
        return {name: self.output(name) for name in self._core.outputs()}

    __call__ = run

    def output(self, name: str, out: Array | None = None) -> Array:
        """A copy of an output of the last step; into `out` if it is given."""
        return self._core.output(name, out)

    def output_view(self, name: str) -> Array:
        """The output itself, read-only and without a copy: the next step writes over it. The session
        stays as long as the view."""
        return self._core.output_view(name)

    @property
    def loss(self) -> float:
        """Of the last step, before its update."""
        return self._core.loss()

    @property
    def last_step_finite(self) -> bool:
        """False if the guard has met a number that is not finite: then nothing has changed."""
        return self._core.last_step_finite()

    @property
    def last_step_spoilt(self) -> bool:
        return self._core.last_step_spoilt()

    def wait(self) -> None:
        """Returns when everything that was started has finished."""
        self._core.wait()

    # --- accumulation

    def accumulate(self, inputs: Mapping[str, Any] | None = None, **more: Any) -> float:
        """One micro-batch without the update."""
        self._set(inputs, more)
        self._core.accumulate()
        return self._core.loss()

    def apply(self) -> None:
        """The update from what was accumulated."""
        self._core.apply()

    @property
    def accumulated(self) -> int:
        return self._core.accumulated()

    @property
    def accumulation_steps(self) -> int:
        return self._core.accumulation_steps()

    @property
    def splits_update(self) -> bool:
        return self._core.splits_update()

    # --- further plans

    def attach(self, name: str, plan: CompiledPlan) -> Plan:
        """A plan over the same parameters and states: evaluation, other batch sizes."""
        self._core.attach(name, plan._core)
        return Plan(self, name)

    def attach_step(self, name: str, plan: CompiledPlan) -> Plan:
        """The main plan for another batch size; running it is a step of the session."""
        self._core.attach_step(name, plan._core)
        return Plan(self, name)

    def plan(self, name: str) -> Plan:
        self._core.plan_inputs(name)
        return Plan(self, name)

    @property
    def plans(self) -> list[str]:
        return self._core.plans()

    # --- values that live from step to step

    @property
    def parameters(self) -> list[str]:
        return self._core.parameters()

    @property
    def states(self) -> list[str]:
        return self._core.states()

    def parameter(self, name: str, out: Array | None = None) -> Array:
        """A copy of it."""
        return handed_out(self._core.parameter(name, out), self._stored_type(name))

    def state(self, name: str, out: Array | None = None) -> Array:
        return handed_out(self._core.state(name, out), self._stored_type(name))

    def _stored_type(self, name: str) -> DType:
        return DType(self._core.stored_type(name)[0])

    def view(self, name: str) -> Array:
        """A parameter or state itself, read-only and without a copy: steps change it."""
        return self._core.stored_view(name)

    def set_parameter(self, name: str, values: Any) -> None:
        self._core.set_parameter(name, as_array(values, self._type_for(name, values)))

    def set_state(self, name: str, values: Any) -> None:
        self._core.set_state(name, as_array(values, self._type_for(name, values)))

    def _type_for(self, name: str, values: Any) -> DType | None:
        return self._stored_type(name) if isinstance(values, (list, tuple, int, float)) else None

    def state_dict(self) -> dict[str, Array]:
        """Copies of all parameters, and of the states of the graph itself, by name."""
        return self.weights().as_dict()

    def gradient(self, parameter: str) -> Array:
        """Of the last step; for sessions compiled with observe_gradients or split_update."""
        return self._core.gradient(parameter)

    def set_gradient(self, parameter: str, values: Any) -> None:
        """Before the update of a split step."""
        self._core.set_gradient(parameter, as_array(values, DType.f32))

    def observed(self, name: str) -> Array:
        """A value of the option `observe`, of the last step."""
        return self._core.observed(name)

    # --- hyper-parameters

    @property
    def scalars(self) -> dict[str, float]:
        return {name: self._core.scalar(name) for name in self._core.scalars()}

    def scalar(self, name: str) -> float:
        return self._core.scalar(name)

    def set_scalar(self, name: str, value: float) -> None:
        """Acts at the next step; nothing is compiled."""
        self._core.set_scalar(name, value)

    @property
    def learning_rate(self) -> float:
        return self._core.learning_rate()

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        self._core.set_learning_rate(value)

    def set_adam(self, lr: float, beta1: float, beta2: float, epsilon: float) -> None:
        self._core.set_adam(lr, beta1, beta2, epsilon)

    def learning_rate_factor(self, pattern: str) -> float:
        """Of the parameter group that was declared with this pattern."""
        return self._core.learning_rate_factor(pattern)

    def set_learning_rate_factor(self, pattern: str, factor: float) -> None:
        self._core.set_learning_rate_factor(pattern, factor)

    # --- files

    def save(self, path: PathLike, what: str = "model") -> None:
        """As safetensors: "model", "optimizer" (moments, counters) or "training", which is both."""
        self._core.save(os.fspath(path), what)

    def load(self, path: PathLike, what: str = "model") -> None:
        """Strict: a TypeError lists everything that does not fit, and nothing has changed."""
        self._core.load(os.fspath(path), what)

    def load_weights(
        self,
        weights: Weights | Mapping[str, Any],
        *,
        strict: bool = True,
        prefixes: Sequence[tuple[str, str]] = (),
        skip: Sequence[str] = (),
        ignore: Sequence[str] | None = None,
    ) -> LoadReport:
        """Weights from anywhere: a file's, or arrays by name."""
        given = weights if isinstance(weights, Weights) else Weights(weights)
        options: dict[str, Any] = {
            "strict": strict,
            "prefixes": list(prefixes),
            "skip": list(skip),
        }
        if ignore is not None:
            options["ignore"] = list(ignore)
        return LoadReport(self._core.load_weights(given._core, options))

    def weights(self) -> Weights:
        """Copies of what load_weights takes."""
        return Weights(_of=self._core.weights())

    # --- looking inside

    @property
    def report(self) -> Report:
        return Report(self._core.report())

    @property
    def memory(self) -> dict[str, int]:
        """Bytes by what they are for."""
        return dict(self._core.memory())

    def set_timing(self, on: bool = True, spans: bool = True) -> None:
        """Times every launch from now on."""
        self._core.set_timing(on, spans)

    def profile(self) -> Profile:
        """Where the time went since set_timing()."""
        return Profile(json.loads(self._core.profile_json()), self._core.profile_text(30))

    def write_trace(self, path: PathLike) -> None:
        """A file that Perfetto and chrome://tracing open."""
        self._core.write_trace(os.fspath(path))

    def __repr__(self) -> str:
        if self.is_closed:
            return "Session(closed)"
        inputs = ", ".join(f"{name} {kind}" for name, kind in self.inputs.items())
        return f"Session({inputs}; {len(self.parameters)} parameters)"

    def __reduce__(self) -> Any:
        raise not_pickled("a session", "save its weights as safetensors with save()")


def _set_by_name(plan: Session | Plan, inputs: Mapping[str, Any]) -> None:
    if not isinstance(inputs, Mapping):
        raise fail(TypeError, f"inputs are a dict by their names, or keywords, not a {type(inputs).__name__}")
    for name, values in inputs.items():
        plan.set_input(name, values)


class Plan:
    """One of a session's plans, with inputs and outputs of its own."""

    def __init__(self, session: Session, name: str) -> None:
        self._session = session
        self.name = name

    @property
    def inputs(self) -> dict[str, Type]:
        core = self._session._core
        names = core.plan_inputs(self.name)
        return {name: _type(core.plan_input_type(self.name, name)) for name in names}

    @property
    def outputs(self) -> list[str]:
        return self._session._core.plan_outputs(self.name)

    def set_input(self, name: str, values: Any) -> None:
        core = self._session._core
        like = None
        if isinstance(values, (list, tuple, int, float)):
            like = DType(core.plan_input_type(self.name, name)[0])
        core.plan_set_input(self.name, name, as_array(values, like))

    def run(self, inputs: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Array]:
        """Runs it with these inputs; gives all outputs."""
        self.step(inputs, **more)
        return {name: self.output(name) for name in self.outputs}

    __call__ = run

    def step(self, inputs: Mapping[str, Any] | None = None, **more: Any) -> None:
        """Runs it with these inputs."""
        if inputs is not None:
            _set_by_name(self, inputs)
        for name, values in more.items():
            self.set_input(name, values)
        self._session._core.plan_run(self.name)

    def accumulate(self) -> None:
        self._session._core.plan_accumulate(self.name)

    def output(self, name: str, out: Array | None = None) -> Array:
        return self._session._core.plan_output(self.name, name, out)

    def output_view(self, name: str) -> Array:
        """Read-only, without a copy."""
        core = self._session._core
        return core.plan_output_view(self.name, name)

    @property
    def loss(self) -> float:
        return self._session._core.plan_loss(self.name)

    def __repr__(self) -> str:
        return f"Plan({self.name!r})"


@dataclass(frozen=True)
class Profile:
    """Where the time of a session's plans went."""

    data: dict[str, Any]
    text: str

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from ._tables import profile_table

        return profile_table(self)


def build_session(
    graph: Graph,
    loss: Tensor,
    *,
    optimizer: Optimizer | None = None,
    seed: int = 0,
    cache: PathLike = "",
    **options: Unpack[CompileOptions],
) -> Session:
    """Forward, backward and update as one plan, and a session of it; the options are CompileOptions.
    `cache` is a file that keeps the plan."""
    plan = compile(graph, loss, optimizer=optimizer, cache=cache, **options)
    return Session(plan, seed=seed)


def build_session_cached(
    graph: Graph, loss: Tensor, path: PathLike, *, optimizer: Optimizer | None = None,
    seed: int = 0, **options: Unpack[CompileOptions],
) -> Session:
    """build_session with the plan of a file, which is written if there is none."""
    return build_session(graph, loss, optimizer=optimizer, seed=seed, cache=path, **options)


def build_session_unoptimized(
    graph: Graph, loss: Tensor, *, optimizer: Optimizer | None = None, seed: int = 0,
    **options: Unpack[CompileOptions],
) -> Session:
    """For debugging: slower, the same numbers."""
    options["optimize"] = False
    return build_session(graph, loss, optimizer=optimizer, seed=seed, **options)


def build_inference_session(
    graph: Graph, *, seed: int = 0, cache: PathLike = "", **options: Unpack[CompileOptions]
) -> Session:
    """The graph's outputs alone: no gradient, no optimizer, no updates.

    >>> import pantala as pn
    >>> g = pn.Graph()
    >>> _ = g.output("y", g.input("x", 3) + 1)
    >>> pn.build_inference_session(g).run(x=[1, 2, 3])["y"]
    array([2., 3., 4.], dtype=float32)
    """
    for name in ("accumulation_steps", "normalize", "split_update", "observe_gradients"):
        if name in options:
            raise fail(TypeError, f"build_inference_session: {name} is an option of training")
    if not graph.outputs:
        raise fail(
            TypeError,
            "build_inference_session: the graph has no output; name one with output()",
        )
    options["non_finite"] = "none"
    return Session(compile(graph.without_updates(), cache=cache, **options), seed=seed)


def build_inference_session_cached(
    graph: Graph, path: PathLike, *, seed: int = 0, **options: Unpack[CompileOptions]
) -> Session:
    """The same with the plan of a file."""
    return build_inference_session(graph, seed=seed, cache=path, **options)
