"""Optimizers as values; pantala.optim makes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import _pantala as _core
from .errors import TypeError, fail


class Optimizer:
    """An optimizer with its hyper-parameters, which are its attributes.

    >>> import pantala as pn
    >>> adam = pn.optim.adam(3e-4)
    >>> adam.lr, adam.replaced(beta1=0.5).beta1
    (0.0003, 0.5)
    """

    def __init__(self, core: _core.Optimizer) -> None:
        self._core = core

    @property
    def name(self) -> str:
        return self._core.name

    @property
    def options(self) -> dict[str, Any]:
        """All hyper-parameters by name."""
        return {**self._core.values, **self._core.flags}

    def replaced(self, **values: float | bool) -> Optimizer:
        """A copy with some hyper-parameters changed."""
        core = self._core
        for name, value in values.items():
            if isinstance(value, bool):
                core = core.replaced_flag(name, value)
            else:
                core = core.replaced(name, value)
        return Optimizer(core)

    def scalars(self) -> dict[str, float]:
        """The scalars that it has in a graph: "optim.lr", ..."""
        return dict(self._core.scalars())

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            options = self.options
            if name in options:
                return options[name]
        raise AttributeError(f"the optimizer {self.name} has no '{name}'")

    def __repr__(self) -> str:
        return f"pn.optim.{self._core.text().replace('true', 'True').replace('false', 'False')}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Optimizer) and self._core == other._core

    def __hash__(self) -> int:
        return hash(self._core.text())

    def __reduce__(self) -> Any:
        return by_name, (self.name, self.options)


def core_of(optimizer: Optimizer) -> _core.Optimizer:
    if not isinstance(optimizer, Optimizer):
        raise fail(TypeError, f"optimizers are made by pn.optim, as pn.optim.adam(1e-3); a {type(optimizer).__name__} is none")
    return optimizer._core


def made(
    name: str, options: dict[str, Any], betas: Sequence[float] | None = None
) -> Optimizer:
    if betas is not None:
        if len(betas) != 2:
            raise fail(TypeError, f"{name}: betas are two numbers, got {betas!r}")
        options["beta1"], options["beta2"] = betas
    return Optimizer(_core.optimizer(name, options))


def by_name(name: str, options: dict[str, Any] | None = None) -> Optimizer:
    """An optimizer by its name and options, as configs give them."""
    return made(name, dict(options or {}))
