"""Tensors by name, outside of any session: the content of safetensors files, or of a dict."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, Union

import numpy.typing as npt

from . import _pantala as _core
from ._types import DType, as_array, handed_out
from .errors import KeyError, fail

PathLike = Union[str, "os.PathLike[str]"]
Array = npt.NDArray[Any]


class Weights(MutableMapping[str, Array]):
    """Arrays by name. Files are mapped, so that what is not read costs nothing.

    >>> import numpy as np
    >>> import pantala as pn
    >>> weights = pn.Weights({"fc.bias": np.zeros(3, np.float32)})
    >>> list(weights), weights["fc.bias"].shape
    (['fc.bias'], (3,))
    """

    def __init__(
        self, values: Mapping[str, Any] | None = None, *, _of: _core.Weights | None = None
    ) -> None:
        self._core = _core.Weights() if _of is None else _of
        for name, value in (values or {}).items():
            self[name] = value

    @staticmethod
    def open(path: PathLike) -> Weights:
        """NAME.safetensors, a sharded file's index, or a folder with either."""
        return Weights(_of=_core.Weights.open(os.fspath(path)))

    def save(self, path: PathLike, max_shard_bytes: int = 0) -> None:
        """As safetensors, in one step: a crash leaves the old file or the new one."""
        self._core.save(os.fspath(path), max_shard_bytes)

    def type(self, name: str) -> tuple[DType, tuple[int, ...]]:
        name_of, shape = self._core.type(name)
        return DType(name_of), shape

    def __getitem__(self, name: str) -> Array:
        if not self._core.contains(name):
            raise fail(KeyError, f"there are no weights '{name}'")
        return handed_out(self._core.get(name), self.type(name)[0])

    def __setitem__(self, name: str, value: Any) -> None:
        array = as_array(value)
        self._core.set(name, array)

    def __delitem__(self, name: str) -> None:
        if not self._core.contains(name):
            raise fail(KeyError, f"there are no weights '{name}'")
        self._core.erase(name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._core.contains(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._core.names())

    def __len__(self) -> int:
        return len(self._core.names())

    def rename(self, name: str, to: str) -> None:
        self._core.rename(name, to)

    def as_dict(self) -> dict[str, Array]:
        return {name: self[name] for name in self}

    @property
    def metadata(self) -> dict[str, str]:
        return self._core.metadata()

    def set_metadata(self, key: str, value: str) -> None:
        self._core.set_metadata(key, value)

    def copy(self) -> Weights:
        return Weights(_of=self._core.copy())

    def __repr__(self) -> str:
        return f"Weights({len(self)} tensors)"


class LoadReport:
    """What became of given weights; names are those of the model."""

    def __init__(self, core: _core.LoadWeightsReport) -> None:
        self.loaded: list[str] = core.loaded
        self.missing: list[str] = core.missing
        self.unexpected: list[str] = core.unexpected
        self.skipped: list[str] = core.skipped
        self.mismatched: list[str] = core.mismatched
        self.tied: list[str] = core.tied
        self._text: str = core.text()

    @property
    def fits(self) -> bool:
        return not (self.missing or self.unexpected or self.mismatched)

    def __repr__(self) -> str:
        return self._text or f"LoadReport({len(self.loaded)} loaded)"
