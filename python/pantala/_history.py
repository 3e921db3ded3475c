"""What a run has told: epochs, validations and the loss of every step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _pantala as _core
from .errors import KeyError, fail

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Evaluation:
    """The loss over some items, and what else was measured: "accuracy", "mae", ..."""

    items: int
    loss: float
    values: dict[str, float]
    confusion: Array | None = None
    """Rows are the true classes, columns the predicted ones; None of many classes."""

    def __getitem__(self, name: str) -> float:
        return self.loss if name == "loss" else self.values[name]

    def __repr__(self) -> str:
        values = ", ".join(f"{name} {value:.4g}" for name, value in self.values.items())
        return f"Evaluation({self.items} items, loss {self.loss:.4g}{', ' if values else ''}{values})"


_MOST_CLASSES = 2000


def evaluation_of(entry: dict[str, Any]) -> Evaluation:
    confusion = None
    if entry["confusion"] is not None:
        classes, cells = entry["confusion"]
        if classes <= _MOST_CLASSES:
            confusion = np.zeros((classes, classes), np.int64)
            for truth, predicted, count in cells:
                confusion[truth, predicted] += count
    return Evaluation(entry["items"], entry["loss"], entry["values"], confusion)


class History(Mapping[str, Array]):
    """Arrays by name, an entry per epoch: "epoch", "loss", "steps", and of validations "val_loss",
    "val_accuracy", ... `step_loss` has the loss of every step. It can be pickled.

    >>> import pantala as pn
    >>> history = pn.History({"epoch": [0, 1], "loss": [2.0, 1.0]}, step_loss=[3.0, 1.0, 1.0])
    >>> history["loss"], len(history.step_loss)
    (array([2., 1.]), 3)
    """

    def __init__(self, columns: Mapping[str, Any], step_loss: Any = ()) -> None:
        self._columns = {name: np.asarray(values) for name, values in columns.items()}
        self.step_loss: Array = np.asarray(step_loss, np.float64)

    def __getitem__(self, name: str) -> Array:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def frame(self) -> Any:
        """As a frame of pandas, an epoch a row."""
        import pandas

        return pandas.DataFrame(self._columns)

    def plot(self, metric: str = "loss") -> Plot:
        """A chart over the epochs; of the loss over the steps, smoothed."""
        return Plot(_svg(self, metric))

    def __repr__(self) -> str:
        count = len(self._columns.get("epoch", ()))
        last = ", ".join(f"{k} {v[-1]:.4g}" for k, v in self._columns.items() if len(v))
        return f"History({count} epochs{'; at the end ' + last if last else ''})"

    def _repr_html_(self) -> str:
        from ._tables import columns_table

        return columns_table(self._columns)

    def __reduce__(self) -> Any:
        return History, (self._columns, self.step_loss)


@dataclass(frozen=True)
class Plot:
    """A chart as SVG, which notebooks show where it stands."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str) -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg)


def _svg(history: History, metric: str) -> str:
    if metric == "loss" and len(history.step_loss):
        steps = list(range(1, len(history.step_loss) + 1))
        curves = [("training", steps, history.step_loss.tolist(), "faint")]
        if "val_loss" in history:
            per_epoch = np.cumsum(history["steps"]).tolist()
            curves.append(("validation", per_epoch, history["val_loss"].tolist(), "marked"))
        return _core.chart_svg("loss", "step", "loss", curves, True, False)
    names = [name for name in (metric, f"val_{metric}") if name in history]
    if not names:
        raise fail(KeyError, f"there is no metric '{metric}'")
    epochs = [epoch + 1 for epoch in history["epoch"].tolist()]
    lines = [(name, epochs, history[name].tolist(), "marked") for name in names]
    return _core.chart_svg(metric, "epoch", metric, lines, True, False)


def history_of(entry: dict[str, Any], step_loss: Any) -> History:
    epochs = entry["epochs"]
    columns: dict[str, Any] = {
        "epoch": np.array([epoch for epoch, _, _ in epochs], np.int64),
        "loss": np.array([loss for _, loss, _ in epochs], np.float64),
        "steps": np.array([steps for _, _, steps in epochs], np.int64),
    }
    evaluations = [None if e is None else evaluation_of(e) for e in entry["evaluations"]]
    names = {name: None for e in evaluations if e is not None for name in ("loss", *e.values)}
    for name in names:
        column = [float("nan") if e is None or (name != "loss" and name not in e.values) else e[name]
                  for e in evaluations]
        columns[f"val_{name}"] = np.array(column, np.float64)
    return History(columns, step_loss)
