"""What a trainer can be given as data, as batches with names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from . import _pantala as _core
from ._types import as_array, is_array
from .data import Dataset, Loader, Transform, dataset, loader
from .errors import TypeError, fail

Batch = tuple[Any, Any, list[tuple[str, Any]]]


def named(values: Any, inputs: Sequence[str], label_input: str) -> Batch:
    """(inputs..., labels), or a dict of them by name, as (data, labels, others by name)."""
    if isinstance(values, Mapping):
        missing = [name for name in (*inputs[:1], label_input) if name not in values]
        if missing:
            raise fail(TypeError, f"a batch has no '{missing[0]}'; it has {', '.join(values)}")
        others = [name for name in values if name not in (inputs[0], label_input)]
        more = [(name, as_array(values[name])) for name in others]
        return as_array(values[inputs[0]]), as_array(values[label_input]), more
    if not isinstance(values, (tuple, list)) or len(values) != len(inputs) + 1:
        wanted = ", ".join((*inputs, label_input))
        raise fail(TypeError, f"a batch is ({wanted}), got {_described(values)}")
    more = [(name, as_array(value)) for name, value in zip(inputs[1:], values[1:-1])]
    return as_array(values[0]), as_array(values[-1]), more


def _described(values: Any) -> str:
    if isinstance(values, (tuple, list)):
        return f"{len(values)} values"
    return f"a {type(values).__name__}"


class Iteration:
    """Batches of anything that can be iterated, once an epoch. The C++ side calls it."""

    def __init__(self, source: Any, inputs: Sequence[str], label_input: str) -> None:
        self._source = source
        self._inputs = list(inputs)
        self._label_input = label_input
        self._iterator: Iterator[Any] = iter(())
        self._begun = False

    def begin(self, epoch: int) -> None:
        source = self._source
        if isinstance(source, Iterator) and self._begun:
            raise fail(
                TypeError,
                "a generator gives one pass; hand over the function that makes it, so that every "
                "epoch has one of its own",
            )
        self._begun = True
        set_epoch = getattr(getattr(source, "sampler", None), "set_epoch", None)
        if set_epoch is not None:
            set_epoch(epoch)
        self._iterator = iter(_called(source, epoch) if callable(source) else source)

    def next(self) -> Batch | None:
        for values in self._iterator:
            return named(values, self._inputs, self._label_input)
        return None

    def batches(self) -> int | None:
        return _length(self._source)

    def items(self) -> int | None:
        return _length(getattr(self._source, "dataset", None))

    def sizes(self) -> list[int]:
        """The batch sizes that a DataLoader will make, so that their plans are compiled ahead."""
        size, items = getattr(self._source, "batch_size", None), self.items()
        if not isinstance(size, int) or not items:
            return []
        rest = 0 if getattr(self._source, "drop_last", False) else items % size
        return [n for n in (size if items >= size else 0, rest) if n]


def _called(function: Callable[..., Iterable[Any]], epoch: int) -> Iterable[Any]:
    takes_epoch = bool(inspect.signature(function).parameters)
    return function(epoch) if takes_epoch else function()


def _length(source: Any) -> int | None:
    try:
        return len(source)
    except Exception:  # whatever the user's own class throws: it is not known
        return None


class ArrayBatches:
    """Batches of several arrays with as many items, shuffled anew in every epoch."""

    def __init__(self, arrays: Sequence[Any], batch_size: int, shuffle: bool, seed: int) -> None:
        self.arrays = [as_array(array) for array in arrays]
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.seed = seed
        self.dataset = self.arrays[0]
        self.drop_last = False
        counts = [len(array) for array in self.arrays]
        if len(set(counts)) != 1:
            raise fail(TypeError, f"arrays of {counts} items do not belong together")

    def __len__(self) -> int:
        return -(-len(self.dataset) // self.batch_size)

    def __call__(self, epoch: int) -> Iterator[tuple[Any, ...]]:
        import numpy as np

        arrays = [np.asarray(array) for array in self.arrays]
        order = np.arange(len(arrays[0]))
        if self.shuffle:
            np.random.default_rng((self.seed, epoch)).shuffle(order)
        for first in range(0, len(order), self.batch_size):
            numbers = order[first : first + self.batch_size]
            yield tuple(array[numbers] for array in arrays)


def as_loader(
    source: Any,
    inputs: Sequence[str],
    label_input: str,
    batch_size: int,
    *,
    shuffle: bool = True,
    seed: int = 0,
    transforms: Sequence[Transform] = (),
) -> Loader:
    """Of a loader, a data set, arrays, a DataLoader of torch, or anything that can be iterated."""
    if isinstance(source, Loader):
        return source
    if _are_arrays(source):
        if len(source) != len(inputs) + 1:
            raise fail(TypeError, f"{len(source)} arrays for {len(inputs)} inputs and the labels")
        if len(inputs) > 1:
            source = ArrayBatches(source, batch_size, shuffle, seed)
        else:
            source = dataset(*source)
    if isinstance(source, Dataset):
        return loader(
            source, batch_size, shuffle=shuffle, seed=seed, transforms=transforms
        )
    if not callable(source) and not isinstance(source, Iterable):
        raise fail(TypeError, f"a {type(source).__name__} is no data to train with")
    return Loader(_core.iteration_loader(Iteration(source, inputs, label_input)))


def _are_arrays(source: Any) -> bool:
    return isinstance(source, (tuple, list)) and len(source) > 1 and all(map(is_array, source))
