"""Callbacks of a trainer, and what hands them what happens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Union

from ._session import Session
from .errors import TypeError, fail

if TYPE_CHECKING:
    from ._trainer import Trainer


@dataclass(frozen=True)
class StepMetrics:
    """Of one update: its number in the epoch, and the loss before it."""

    epoch: int
    step: int
    loss: float


@dataclass(frozen=True)
class EpochStats:
    """Of one epoch; the loss is the mean over all labels."""

    epoch: int
    loss: float
    steps: int


@dataclass(frozen=True)
class Activity:
    """What begins: "training", "compiling" or "validating"."""

    kind: str
    batch: int
    batches: int | None


class Callback:
    """Hooks that do nothing. They may read and change the trainer's session, and stop the run with
    `self.trainer.stop()`. What one raises ends the run with its checkpoint.

    >>> import pantala as pn
    >>> class HalveTheRate(pn.Callback):
    ...     def on_epoch(self, stats):
    ...         self.trainer.session.learning_rate /= 2
    """

    trainer: Trainer

    def on_start(self) -> None:
        """When a run begins; `self.trainer` is set."""

    def on_gradients(self, session: Session) -> None:
        """Before each update, with gradients that can be read and set; of split updates only."""

    def on_step(self, metrics: StepMetrics) -> None:
        """After each update."""

    def on_epoch(self, stats: EpochStats) -> None:
        """After each epoch and its validation (`self.trainer.last_evaluation`)."""

    def on_activity(self, activity: Activity) -> None:
        """Before something that may take a while, and when training goes on."""


CallbackLike = Union[Callback, Callable[[StepMetrics], Any]]


class _OnStep(Callback):
    def __init__(self, function: Callable[[StepMetrics], Any]) -> None:
        self._function = function

    def on_step(self, metrics: StepMetrics) -> None:
        self._function(metrics)


class Dispatcher:
    """Stands between the C++ trainer and the callbacks of the run at hand."""

    def __init__(self) -> None:
        self._callbacks: list[Callback] = []
        self._trainer: Trainer | None = None

    def begin(self, trainer: Trainer, callbacks: Sequence[CallbackLike]) -> None:
        if not isinstance(callbacks, Sequence) or not all(isinstance(c, Callback) or callable(c) for c in callbacks):
            raise fail(TypeError, f"callbacks are a list of functions and of pn.Callback, not {callbacks!r}")
        self._trainer = trainer
        self._callbacks = [c if isinstance(c, Callback) else _OnStep(c) for c in callbacks]
        for callback in self._callbacks:
            callback.trainer = trainer

    def end(self) -> None:
        self._callbacks = []
        self._trainer = None

    def on_start(self) -> None:
        for callback in self._callbacks:
            callback.on_start()

    def on_gradients(self) -> None:
        if self._trainer is not None:
            session = self._trainer.session
            for callback in self._callbacks:
                callback.on_gradients(session)

    def on_step(self, epoch: int, step: int, loss: float) -> None:
        metrics = StepMetrics(epoch, step, loss)
        for callback in self._callbacks:
            callback.on_step(metrics)

    def on_epoch(self, epoch: int, loss: float, steps: int) -> None:
        stats = EpochStats(epoch, loss, steps)
        for callback in self._callbacks:
            callback.on_epoch(stats)

    def on_activity(self, kind: str, batch: int, batches: int | None) -> None:
        activity = Activity(kind, batch, batches)
        for callback in self._callbacks:
            callback.on_activity(activity)
