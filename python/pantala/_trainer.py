"""Trainers: sessions over data, epoch after epoch."""

from __future__ import annotations

import builtins
import inspect
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Union

import numpy as np
import numpy.typing as npt

from . import _pantala as _core
from ._callbacks import CallbackLike, Dispatcher, StepMetrics
from ._compile import CompiledPlan, CompileOptions, PathLike, core_options
from ._graph import Graph
from ._history import Evaluation, History, evaluation_of, history_of
from ._iteration import as_loader, named
from ._optimizer import Optimizer, core_of
from ._progress import line_for, options_of
from ._rates import PlateauOptions, RateSchedule
from ._session import Session
from ._tensor import Tensor
from ._types import as_array
from .data import Transform
from .errors import ThreadError, TypeError, fail, not_pickled
from .zoo import Model, model as zoo_model

if TYPE_CHECKING:
    from typing_extensions import Unpack

Array = npt.NDArray[Any]
_BATCHES_AT_A_TIME = 16
ModelLike = Union[str, Graph, Model, CompiledPlan, Callable[..., Any]]


@dataclass(frozen=True)
class EarlyStopping:
    """Ends a run when a metric of the validation has stopped improving."""

    metric: str = "loss"
    larger_is_better: bool = False
    patience: int = 5
    min_delta: float = 0
    restore_best: bool = True


@dataclass(frozen=True)
class Checkpoints:
    """Where and when a run is saved; `keep_last` of 0 keeps all."""

    folder: str
    every_steps: int = 0
    every_epochs: int = 1
    keep_last: int = 3
    metric: str = "loss"
    larger_is_better: bool = False


@dataclass(frozen=True)
class Run:
    """What fit() gives: how it ended ("finished", "stopped_early" or "interrupted"), and what it told."""

    end: str
    history: History
    restored_epoch: int | None = None

    def plot(self, metric: str = "loss") -> Any:
        """A chart, which a notebook shows."""
        return self.history.plot(metric)

    def __repr__(self) -> str:
        return f"Run({self.end}, {self.history!r})"

    def _repr_html_(self) -> str:
        return self.history._repr_html_()


class Trainer:
    """Trains a model: the name of one of the zoo, a plan that was compiled with an optimizer, or a
    function that makes the graph for a batch size. The function may take `phase` ("training" or
    "evaluation") or `training` (a bool); it gives a zoo Model, or a Graph whose inputs and outputs have
    the names below.

    >>> import numpy as np
    >>> import pantala as pn
    >>> x = np.random.default_rng(0).normal(size=(64, 4)).astype(np.float32)
    >>> y = (x[:, 0] > 0).astype(np.int64)
    >>> trainer = pn.Trainer(
    ...     lambda batch: pn.zoo.mlp(batch, 4, (16,), 2), 16, optimizer=pn.optim.adam(0.05)
    ... )
    >>> run = trainer.fit((x, y), epochs=5, progress=False)
    >>> run.end, bool(run.history["loss"][-1] < run.history["loss"][0])
    ('finished', True)
    """

    def __init__(
        self,
        model: ModelLike,
        batch_size: int = 64,
        *,
        optimizer: Optimizer | None = None,
        rate_schedule: RateSchedule | None = None,
        plateau: PlateauOptions | None = None,
        plateau_metric: str = "loss",
        data_input: str = "x",
        more_inputs: Sequence[str] = (),
        label_input: str = "labels",
        loss_output: str = "loss",
        prediction_output: str = "logits",
        class_axis: int = 1,
        measured: str = "",
        on_non_finite: str = "error",
        evaluate_average: bool = True,
        plan_cache: PathLike = "",
        seed: int = 0,
        **options: Unpack[CompileOptions],
    ) -> None:
        self._names = [data_input, label_input, loss_output, prediction_output]
        config: dict[str, Any] = {
            "optimizer": None if optimizer is None else core_of(optimizer),
            "rate_schedule": None if rate_schedule is None else rate_schedule._core,
            "plateau": None if plateau is None else dict(plateau.options),
            "plateau_metric": plateau_metric,
            "data_input": data_input,
            "label_input": label_input,
            "loss_output": loss_output,
            "prediction_output": prediction_output,
            "class_axis": class_axis,
            "measured": measured,
            "non_finite": on_non_finite,
            "evaluate_average": evaluate_average,
            "plan_cache": os.fspath(plan_cache) or None,
        }
        self.batch_size = batch_size
        if isinstance(model, CompiledPlan):
            self._core = self._of_plan(model, config, seed)
        else:
            maker = _ModelMaker(model, self._names)
            core = core_options(options, optimizer)
            self._core = _core.trainer_of_model(maker, batch_size, config, core, {"seed": seed})
        self._inputs = [self._names[0], *more_inputs]
        self._control = _core.run_control()
        self._dispatcher: Dispatcher | None = None
        self._monitor: Any = None
        self._shown = _Shown()
        self._losses: Any = None
        self._fitting: int | None = None  # the thread whose fit() is under way
        self._seed = seed

    def _of_plan(
        self, plan: CompiledPlan, config: dict[str, Any], seed: int
    ) -> _core.Trainer:
        if plan._result is None:
            raise fail(TypeError, "a trainer needs a plan that was compiled here, not one of a file")
        if plan._core.has_loss is False:
            raise fail(TypeError, "a trainer needs a plan with a loss")
        return _core.trainer_of_session(plan._result, {"seed": seed}, config)

    # --- training

    def fit(
        self,
        data: Any,
        *,
        epochs: int = 1,
        validation: Any = None,
        max_steps: int = 0,
        callbacks: Sequence[CallbackLike] = (),
        early_stopping: EarlyStopping | None = None,
        checkpoints: Checkpoints | PathLike | None = None,
        folder: PathLike | None = None,
        restart: bool = False,
        progress: bool | None = None,
        shuffle: bool = True,
        transforms: Sequence[Transform] = (),
    ) -> Run:
        """Trains on a loader, a data set, arrays (data, labels), a DataLoader of torch, an iterable of
        batches, or a function that gives one for each epoch. `epochs` counts from the beginning: what
        a checkpoint has is not trained again. Ctrl-C saves and returns.

        folder: a run folder with metrics, plots, checkpoints and model, from which the same call
            continues
        checkpoints: a folder for checkpoints alone
        progress: None shows a line where somebody watches
        """
        self._check_not_in_fit("fit")
        loader = self._loader(data, shuffle, transforms)
        tested = None if validation is None else self._loader(validation, False, transforms)
        options = _fit_options(epochs, max_steps, early_stopping, checkpoints)
        self._begin(callbacks, progress, folder)
        first = len(self._losses.take())
        arguments = (loader._core, None if tested is None else tested._core, options)
        self._fitting = threading.get_ident()
        try:
            if folder is None:
                result = self._core.fit(*arguments, self._control)
            else:
                result = _core.fit_in_folder(
                    self._core, *arguments, os.fspath(folder), restart, self._line(), self._control
                )
        finally:
            self._fitting = None
            self._end()
        end, history, restored, _ = result
        return Run(end, history_of(history, self._losses.take()[first:]), restored)

    def _loader(self, data: Any, shuffle: bool, transforms: Sequence[Transform]) -> Any:
        return as_loader(
            data,
            self._inputs,
            self._names[1],
            self.batch_size,
            shuffle=shuffle,
            seed=self._seed,
            transforms=transforms,
        )

    def _check_not_in_fit(self, what: str) -> None:
        """A run has one set of callbacks, which are asked in the midst of its work."""
        if self._fitting is not None:
            kind = TypeError if self._fitting == threading.get_ident() else ThreadError
            raise fail(kind, f"{what}() cannot be called while this trainer's fit() is under way")

    def _begin(
        self, callbacks: Sequence[CallbackLike], progress: bool | None, folder: Any
    ) -> None:
        self._control.reset()
        self._shown.line = line_for(progress)
        if self._losses is None:
            self._losses = _core.add_loss_history(self._core)
        if self._shown.line is not None and folder is None and self._monitor is None:
            self._monitor = _core.add_monitor(self._core, self._line())
        if callbacks and self._dispatcher is None:
            self._dispatcher = Dispatcher()
            self._core.add_callback(self._dispatcher, self._control)
        if self._dispatcher is not None:
            self._dispatcher.begin(self, callbacks)

    def _line(self) -> dict[str, Any]:
        if self._shown.line is None:
            return {"mode": "none"}
        return {**options_of(self._shown.line), "write": self._shown.write}

    def _end(self) -> None:
        if self._monitor is not None:
            self._monitor.finish()
        if self._shown.line is not None:
            self._shown.line.finish()
        self._shown.line = None
        if self._dispatcher is not None:
            self._dispatcher.end()

    def stop(self) -> None:
        """For callbacks: the run saves and ends behind this batch."""
        self._control.stop()

    def save(self) -> None:
        """For callbacks: the run writes a checkpoint behind this batch."""
        self._control.save()

    def step(self, *batch: Any) -> float | None:
        """One batch by hand, (inputs..., labels); gives its loss. With accumulation None until an
        update comes out of it."""
        self._check_not_in_fit("step")
        values = batch[0] if len(batch) == 1 else batch
        made = self._core.step(named(values, self._inputs, self._names[1]))
        return None if made is None else made[2]

    def finish_window(self) -> StepMetrics | None:
        """The update from an unfinished window of micro-batches."""
        self._check_not_in_fit("finish_window")
        made = self._core.finish_window()
        return None if made is None else StepMetrics(*made)

    def evaluate(self, data: Any, *, transforms: Sequence[Transform] = ()) -> Evaluation:
        """Loss and metrics over data, as fit() takes them."""
        return evaluation_of(self._core.evaluate(self._loader(data, False, transforms)._core))

    def predict(self, data: Any) -> Array:
        """The model's predictions for any number of items."""
        items = as_array(data)
        count = len(items) if getattr(items, "ndim", 0) else 0
        # What is predicted at a time is copied; whole batches of it make the same numbers.
        most = self.batch_size * _BATCHES_AT_A_TIME
        if count <= most:
            return self._core.predict(items)
        parts = [self._core.predict(items[first : first + most]) for first in range(0, count, most)]
        return np.concatenate(parts)

    # --- what it has

    @property
    def session(self) -> Session:
        return Session._from(self._core.session())

    @property
    def state(self) -> dict[str, Any]:
        """Where the run is: epoch, batches, global_steps, skipped, ..."""
        values = dict(self._core.state())
        values["history"] = history_of(values["history"], ())
        return values

    @property
    def progress(self) -> dict[str, Any]:
        return dict(self._core.progress())

    @property
    def last_evaluation(self) -> Evaluation | None:
        entry = self._core.last_evaluation()
        return None if entry is None else evaluation_of(entry)

    @property
    def failed_batch(self) -> dict[str, Array] | None:
        """The batch of the last DivergenceError, by the names of the inputs; None if there was none."""
        batch = self._core.failed_batch()
        if batch is None:
            return None
        return {self._names[0]: batch[0], self._names[1]: batch[1], **batch[2]}

    # --- files

    def save_model(self, path: PathLike) -> None:
        """The weights, as safetensors; averages where there are some."""
        self._core.save_model(os.fspath(path))

    def save_checkpoint(self, folder: PathLike) -> None:
        self._core.save_checkpoint(os.fspath(folder))

    def load_checkpoint(self, folder: PathLike) -> None:
        self._check_not_in_fit("load_checkpoint")
        self._core.load_checkpoint(os.fspath(folder))

    def resume(self, checkpoints: PathLike) -> str | None:
        """Loads the newest checkpoint of a folder that is whole; None if there is none."""
        self._check_not_in_fit("resume")
        return self._core.resume(os.fspath(checkpoints))

    def restore_best(self) -> int | None:
        """The weights of the best epoch, if early stopping has kept them."""
        self._check_not_in_fit("restore_best")
        return self._core.restore_best()

    def __repr__(self) -> str:
        return f"Trainer({self.session!r})"

    def __reduce__(self) -> Any:
        raise not_pickled("a trainer", "save_checkpoint() keeps all that it knows, save_model() the weights")


class _ModelMaker:
    """The user's model as a function of batch size and phase. The C++ trainer keeps it, so it must not
    lead back to the trainer's object."""

    def __init__(self, model: Any, names: list[str]) -> None:
        self._model = model
        self.names = names
        self._taken = _parameters(model) if callable(model) else set()
        if isinstance(model, (Graph, Model)):
            raise fail(
                TypeError,
                "a trainer needs a function that makes the graph for a batch size, or a plan: "
                "pn.compile(graph, loss, optimizer=...)",
            )
        if not callable(model) and not isinstance(model, str):
            raise fail(TypeError, f"a {type(model).__name__} is no model to train")

    def __call__(self, batch: int, phase: str) -> Any:
        return self._trainable(self._made(batch, phase))

    def _made(self, batch: int, phase: str) -> Any:
        training = phase == "training"
        if isinstance(self._model, str):
            return zoo_model(self._model, batch, training=training)
        if "phase" in self._taken:
            return self._model(batch, phase=phase)
        if "training" in self._taken:
            return self._model(batch, training=training)
        return self._model(batch)

    def _trainable(self, made: Any) -> Any:
        """(graph, input, labels, loss, prediction), as the module takes it."""
        if isinstance(made, Graph):
            made = self._by_names(made)
        if isinstance(made, Model):
            prediction = made.prediction if made.logits is None else made.logits
            made = (made.graph, made.input, made.labels, made.loss, prediction)
        if not isinstance(made, tuple) or len(made) != 5:
            raise fail(
                TypeError,
                "the model's function gives a pn.zoo.Model or a pn.Graph, not "
                f"a {type(made).__name__}",
            )
        graph, data, labels, loss, prediction = made
        _named_output(graph, self.names[2], loss)
        if prediction is not None:
            _named_output(graph, self.names[3], prediction)
        self.names[:2] = [_leaf_name(graph, data), _leaf_name(graph, labels)]
        cores = [value._core for value in (data, labels, loss)]
        return (graph._core, *cores, None if prediction is None else prediction._core)

    def _by_names(self, graph: Graph) -> tuple[Any, ...]:
        data, labels, loss, prediction = self.names
        leaves = graph, graph.leaf(data), graph.leaf(labels)
        return (*leaves, graph.output(loss), graph.outputs.get(prediction))


class _Shown:
    """The line of the run at hand, which the C++ trainer's monitor writes to."""

    def __init__(self) -> None:
        self.line: Any = None

    def write(self, text: str) -> None:
        if self.line is not None:
            self.line.write(text)


def _parameters(function: Any) -> set[str]:
    try:
        return set(inspect.signature(function).parameters)
    except (_BuiltinTypeError, _BuiltinValueError):
        return set()


_BuiltinTypeError, _BuiltinValueError = builtins.TypeError, builtins.ValueError


def _named_output(graph: Graph, name: str, value: Tensor) -> None:
    if not any(value.same(other) for other in graph.outputs.values()):
        graph.output(name, value)


def _leaf_name(graph: Graph, value: Tensor) -> str:
    for leaf in graph.leaves("input"):
        if leaf.value.same(value):
            return leaf.name
    raise fail(TypeError, f"{value!r} is no input of the model's graph")


def _fit_options(
    epochs: int,
    max_steps: int,
    early_stopping: EarlyStopping | None,
    checkpoints: Checkpoints | PathLike | None,
) -> dict[str, Any]:
    options: dict[str, Any] = {"epochs": epochs, "max_steps": max_steps}
    if early_stopping is not None:
        options["early_stopping"] = asdict(early_stopping)
    if checkpoints is not None:
        if not isinstance(checkpoints, Checkpoints):
            checkpoints = Checkpoints(os.fspath(checkpoints))
        options.update(asdict(checkpoints), folder=os.fspath(checkpoints.folder))
    return options
