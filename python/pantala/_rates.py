"""Rate schedules as values; pantala.rates makes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from . import _pantala as _core


class RateSchedule:
    """The rate of each optimizer step, as a function of its number.

    >>> import pantala as pn
    >>> [round(pn.rates.step(step_size=2, gamma=0.5).lr(k, 1.0), 3) for k in range(5)]
    [1.0, 1.0, 0.5, 0.5, 0.25]
    """

    def __init__(self, core: _core.RateSchedule, name: str, options: dict[str, Any]) -> None:
        self._core = core
        self._name = name
        self._options = options

    @property
    def name(self) -> str:
        return self._name

    @property
    def options(self) -> dict[str, Any]:
        return dict(self._options)

    @property
    def warmup_steps(self) -> int:
        return self._core.warmup_steps

    def with_warmup(self, steps: int) -> RateSchedule:
        return made(self._name, {**self._options, "warmup_steps": steps})

    def lr(self, step: int, base_lr: float) -> float:
        """The rate of step 0, 1, 2, ..., for an optimizer whose own rate is `base_lr`."""
        return self._core.lr(step, base_lr)

    def __repr__(self) -> str:
        return f"pn.rates.{self._core.text()}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RateSchedule) and self._core == other._core

    def __hash__(self) -> int:
        return hash(self._core.text())

    def __reduce__(self) -> Any:
        return made, (self._name, self._options)


@dataclass(frozen=True)
class PlateauOptions:
    """When to lower the rate because a metric has stopped improving; see pantala.rates.plateau."""

    options: dict[str, Any] = field(default_factory=dict)


class Plateau:
    """Lowers a rate when what is reported has stopped improving.

    >>> import pantala as pn
    >>> plateau = pn.Plateau(1.0, pn.rates.plateau(factor=0.5, patience=0))
    >>> [plateau.report(loss) for loss in (1.0, 1.0)], plateau.lr
    ([False, True], 0.5)
    """

    def __init__(self, base_lr: float, options: PlateauOptions | None = None) -> None:
        self._core = _core.Plateau(base_lr, dict(options.options) if options else {})

    def report(self, metric: float) -> bool:
        """Takes the metric of one evaluation; says whether the rate was lowered."""
        return self._core.report(metric)

    @property
    def lr(self) -> float:
        return self._core.lr

    def __repr__(self) -> str:
        return f"<{self._core.text()}>"


def made(name: str, options: dict[str, Any]) -> RateSchedule:
    return RateSchedule(_core.rate_schedule(name, options), name, options)


def plateau_made(options: dict[str, Any]) -> PlateauOptions:
    _core.Plateau(0.0, options)  # checks them
    return PlateauOptions(options)
