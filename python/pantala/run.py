"""Runs of configs, as `pantala train` makes them, and runs side by side.

    outcome = pn.run.train("run.toml", ["epochs=3", "optimizer.lr=0.01"])
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import _pantala as _core
from ._weights import PathLike


@dataclass(frozen=True)
class Outcome:
    """How a run ended: "finished", "was_finished" before, "interrupted" and saved, or "not_begun";
    `result` is what result.json holds."""

    end: str
    result: dict[str, Any]
    steps: int


def train(
    config: PathLike = "",
    values: Sequence[str] = (),
    *,
    resume: bool = False,
    restart: bool = False,
    plan_cache: PathLike = "",
) -> Outcome:
    """The whole run of a TOML file with values "key=value" on top, or what is left of it."""
    made = _core.run_training(
        os.fspath(config), list(values), resume, restart, os.fspath(plan_cache)
    )
    result = json.loads(made["result"]) if made["result"] else {}
    return Outcome(made["end"], result, made["steps"])


@dataclass(frozen=True)
class Sweep:
    """What sweep() gives: the folders of all runs, what compare() says of them ({} if the sweep was
    interrupted), how many diverged, and the messages of those that failed, by folder."""

    folders: list[str]
    comparison: dict[str, Any]
    diverged: int
    failed: dict[str, str]
    interrupted: bool


def sweep(
    config: PathLike = "",
    values: Sequence[str] = (),
    *,
    keys: Sequence[str] | Mapping[str, Sequence[Any]],
    restart: bool = False,
    plan_cache: PathLike = "",
) -> Sweep:
    """A run for every combination of the values of some keys, one after the other, in sub-folders of
    output.folder. Keys are "optimizer.lr=1e-4,1e-3" or {"optimizer.lr": [1e-4, 1e-3]}."""
    if isinstance(keys, Mapping):
        keys = [f"{key}={','.join(map(str, choices))}" for key, choices in keys.items()]
    made = _core.run_sweep(
        os.fspath(config), list(values), list(keys), restart, os.fspath(plan_cache)
    )
    return Sweep(
        made["folders"],
        json.loads(made["comparison"]) if made["comparison"] else {},
        made["diverged"],
        dict(made["failed"]),
        made["interrupted"],
    )


def compare(folders: Sequence[PathLike], metric: str = "") -> dict[str, Any]:
    """Runs side by side: the keys that differ, their metrics, and the best."""
    return json.loads(_core.compare_runs([os.fspath(f) for f in folders], metric))


def draw_plots(folder: PathLike) -> list[str]:
    """Draws what a run's log has into its folder; gives the files."""
    return _core.draw_plots(os.fspath(folder))
