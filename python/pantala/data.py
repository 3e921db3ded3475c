"""Data for training: data sets, transforms, and loaders that hand out batches.

>>> import numpy as np
>>> import pantala as pn
>>> items = pn.data.dataset(np.zeros((10, 3), np.float32), np.arange(10))
>>> [len(labels) for _, labels in pn.data.loader(items, batch_size=4, shuffle=False)]
[4, 4, 2]
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _pantala as _core
from ._types import as_array
from ._weights import PathLike

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Column:
    """A column of the data of a table; of a column of text what its numbers 0, 1, ... stand for."""

    name: str
    texts: Sequence[str] = ()
    one_hot: bool = False


@dataclass(frozen=True)
class TableRows:
    """What a table says of its items, as it stands there: the items' numbers among the lines of data,
    the texts of the columns item by item, and those of the labels."""

    numbers: list[int]
    fields: list[str]
    labels: list[str]


class Dataset:
    """Items with labels. Arrays are read where they lie, so they must not change while they are used."""

    def __init__(self, core: _core.Dataset) -> None:
        self._core = core

    @property
    def name(self) -> str:
        return self._core.name

    @property
    def classes(self) -> list[str]:
        """Names of the classes, if they have some."""
        return self._core.classes

    @property
    def columns(self) -> list[Column]:
        """Of the data, if they come from a table."""
        return [Column(*entry) for entry in self._core.columns()]

    @property
    def rows(self) -> TableRows | None:
        """Of a table that was read with keep_rows."""
        rows = self._core.rows()
        return None if rows is None else TableRows(*rows)

    @property
    def data(self) -> Array | None:
        """A copy of all items; None where they are made when they are needed."""
        return self._core.data()

    @property
    def labels(self) -> Array | None:
        return self._core.labels()

    @property
    def item_shape(self) -> tuple[int, ...]:
        return self._core.item_form()[1]

    def select(self, numbers: Sequence[int]) -> Dataset:
        """The items with these numbers, in this order."""
        return Dataset(self._core.select([int(number) for number in numbers]))

    def slice(self, first: int, count: int) -> Dataset:
        return Dataset(self._core.slice(first, count))

    def split(self, count: int, seed: int = 0) -> tuple[Dataset, Dataset]:
        """A random split: (the rest, `count` items)."""
        rest, part = self._core.split(count, seed)
        return Dataset(rest), Dataset(part)

    def __len__(self) -> int:
        return self._core.size

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}, {len(self)} items of {self.item_shape})"


class TrainTest(NamedTuple):
    train: Dataset
    test: Dataset


def dataset(data: Any, labels: Any, name: str = "data") -> Dataset:
    """Of two arrays with as many items; the first axis counts them."""
    return Dataset(_core.make_dataset(as_array(data), _labels(labels), name))


def _labels(labels: Any) -> Any:
    return as_array(np.asarray(labels) if isinstance(labels, (list, tuple)) else labels)


# --- transforms: applied to each item when a batch is made, in order


class Transform:
    """What the classes below are."""


@dataclass(frozen=True)
class Scale(Transform):
    """To f32, times factor."""

    factor: float = 1.0 / 255


@dataclass(frozen=True)
class Normalize(Transform):
    """To f32; (x - mean) / std by channel, or one for all."""

    mean: Sequence[float]
    std: Sequence[float]


@dataclass(frozen=True)
class Reshape(Transform):
    """Of an item; -1 at most once."""

    shape: Sequence[int]


@dataclass(frozen=True)
class Pad(Transform):
    """Zeros around the last two axes."""

    pixels: int = 0


@dataclass(frozen=True)
class Resize(Transform):
    """Bilinear with antialiasing, as torchvision's; without a width the shorter side becomes height."""

    height: int
    width: int = 0


@dataclass(frozen=True)
class RandomCrop(Transform):
    height: int
    width: int


@dataclass(frozen=True)
class CenterCrop(Transform):
    height: int
    width: int


@dataclass(frozen=True)
class RandomResizedCrop(Transform):
    """A window of random area and ratio of width to height, resized."""

    height: int
    width: int
    min_area: float = 0.08
    max_area: float = 1
    min_ratio: float = 3.0 / 4
    max_ratio: float = 4.0 / 3


@dataclass(frozen=True)
class RandomFlip(Transform):
    """Of the last axis."""

    p: float = 0.5


@dataclass(frozen=True)
class ColorJitter(Transform):
    """As torchvision's."""

    brightness: float = 0
    contrast: float = 0
    saturation: float = 0
    hue: float = 0


@dataclass(frozen=True)
class RandomRotation(Transform):
    degrees: float = 0


@dataclass(frozen=True)
class Channels(Transform):
    """One channel is repeated; three become gray for 1."""

    count: int = 3


@dataclass(frozen=True)
class OneHot(Transform):
    """Of the label: an f32 vector."""

    classes: int


def _core_transforms(transforms: Sequence[Transform]) -> list[tuple[str, dict[str, Any]]]:
    def values(transform: Transform) -> dict[str, Any]:
        entries = asdict(transform)  # type: ignore[call-overload]
        return {k: list(v) if isinstance(v, tuple) else v for k, v in entries.items()}

    return [(type(transform).__name__, values(transform)) for transform in transforms]


# --- loaders


class Loader:
    """Hands out batches; a trainer takes it, and it can be iterated: (data, labels) of one pass."""

    def __init__(self, core: _core.Loader) -> None:
        self._core = core
        self._epoch = 0

    def __iter__(self) -> Iterator[tuple[Array, Array]]:
        self._core.shuffle(self._epoch)
        self._epoch += 1
        while (batch := self._core.next()) is not None:
            yield batch

    def __len__(self) -> int:
        return self._core.batches() or 0

    @property
    def items(self) -> int | None:
        """Of a pass, if known."""
        return self._core.items()


def loader(
    items: Dataset,
    batch_size: int = 64,
    *,
    shuffle: bool = True,
    drop_last: bool = False,
    seed: int = 0,
    threads: int = 1,
    prefetch: int = 4,
    transforms: Sequence[Transform] = (),
) -> Loader:
    """Batches of a data set. The order is a function of seed and epoch; threads make batches ahead
    and change none."""
    options = {
        "batch_size": batch_size,
        "shuffle": shuffle,
        "drop_last": drop_last,
        "seed": seed,
        "threads": threads,
        "prefetch": prefetch,
        "transforms": _core_transforms(transforms),
    }
    return Loader(_core.make_loader(items._core, options))


# --- files


def _both(pair: tuple[_core.Dataset, _core.Dataset]) -> TrainTest:
    return TrainTest(Dataset(pair[0]), Dataset(pair[1]))


def fashion_mnist() -> TrainTest:
    """From where Debian's package dataset-fashion-mnist puts it, or from
    $PANTALA_DATA/fashion-mnist: u8 images [items, 1, 28, 28]."""
    return _both(_core.fashion_mnist())


def read_idx_folder(folder: PathLike) -> TrainTest:
    """The four files of the MNIST family, plain or .gz."""
    return _both(_core.read_idx_folder(os.fspath(folder)))


def read_csv(
    path: PathLike,
    *,
    separator: str = ",",
    header: bool | None = None,
    label: str = "",
    like: Sequence[Column] = (),
    label_may_lack: bool = False,
    missing: str = "error",
    one_hot: Sequence[str] = (),
    keep_rows: bool = False,
) -> Dataset:
    """A table of numbers and texts.

    separator: one character, or "auto"
    header: None looks for one
    label: a column by its name or number; the last one unless it is given
    like: the columns that a model was trained with (Dataset.columns), whose texts keep their numbers
    label_may_lack: the file may have the columns of `like` alone; labels are 0 then
    missing: what becomes of a line with an empty field: "error", "drop", or "keep" as NaN
    one_hot: columns of text that become a column per text
    keep_rows: Dataset.rows has the texts of the file

    >>> import pathlib, tempfile
    >>> import pantala as pn
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "flowers.csv"
    >>> _ = file.write_text("length,colour,kind\\n1.5,red,rose\\n2,white,lily\\n")
    >>> flowers = pn.data.read_csv(file)
    >>> flowers.classes, flowers.data.tolist(), flowers.columns[1].texts
    (['rose', 'lily'], [[1.5, 0.0], [2.0, 1.0]], ['red', 'white'])
    """
    options = {
        "separator": separator,
        "header": header,
        "label": label,
        "missing": missing,
        "one_hot": list(one_hot),
        "like": [(column.name, list(column.texts), column.one_hot) for column in like],
        "label_may_lack": label_may_lack,
        "keep_rows": keep_rows,
    }
    return Dataset(_core.read_csv(os.fspath(path), options))


class ImageSets(NamedTuple):
    train: Dataset
    test: Dataset | None


def read_image_folder(
    folder: PathLike, channels: int = 3, classes: Sequence[str] = ()
) -> Dataset:
    """A class per sub-folder; images are read when a batch wants them. `classes`: those, by number,
    that the folder may have."""
    return Dataset(_core.read_image_folder(os.fspath(folder), channels, list(classes)))


def read_image_sets(
    folder: PathLike, channels: int = 3, classes: Sequence[str] = ()
) -> ImageSets:
    """Of a folder with `train` and one of `val`, `valid`, `validation` or `test`; of any other all is
    `train`."""
    train, test = _core.read_image_sets(os.fspath(folder), channels, list(classes))
    return ImageSets(Dataset(train), None if test is None else Dataset(test))


def read_images(path: PathLike | Sequence[PathLike], channels: int = 3) -> Dataset:
    """A file, all images below a folder, or a list of files; the labels are all 0."""
    if isinstance(path, (str, os.PathLike)):
        return Dataset(_core.read_images(os.fspath(path), channels))
    return Dataset(_core.read_image_files([os.fspath(file) for file in path], channels))


def read_image(path: PathLike, channels: int = 3) -> Array:
    """A PNG or JPEG file as u8 [channels, height, width]."""
    return _core.read_image(os.fspath(path), channels)


def is_image_name(path: PathLike) -> bool:
    """By its extension.

    >>> import pantala as pn
    >>> pn.data.is_image_name("cat.JPG"), pn.data.is_image_name("cat.txt")
    (True, False)
    """
    return _core.is_image_name(os.fspath(path))


def read_tokens(
    path: PathLike,
    *,
    sequence: int = 128,
    stride: int = 0,
    type: str = "u16",
    vocabulary: int = 0,
) -> Dataset:
    """A file of tokens ("u8", "u16" or "i32"); the labels of an item are the tokens that follow each
    of its own.

    >>> import pathlib, tempfile
    >>> import pantala as pn
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "text"
    >>> _ = file.write_text("abcdefg")
    >>> items = pn.data.read_tokens(file, sequence=3, type="u8")
    >>> for data, labels in pn.data.loader(items, 1, shuffle=False):
    ...     bytes(data[0].tolist()), bytes(labels[0].tolist())
    (b'abc', b'bcd')
    (b'def', b'efg')
    """
    return Dataset(_core.read_tokens(os.fspath(path), sequence, stride, type, vocabulary))


def read_token_parts(
    path: PathLike,
    share: float,
    *,
    sequence: int = 128,
    stride: int = 0,
    type: str = "u16",
    vocabulary: int = 0,
) -> TrainTest:
    """As read_tokens, in two parts: the last `share` of the tokens is the test set."""
    parts = _core.read_token_parts(
        os.fspath(path), sequence, stride, type, vocabulary, share
    )
    return _both(parts)


# --- arrays of files


def read_idx(path: PathLike) -> Array:
    """A file of the MNIST family, plain or .gz."""
    return _core.read_idx(os.fspath(path))


def read_npy(path: PathLike) -> Array:
    """As trainers read it: f2 becomes f32, small integers i32."""
    return _core.read_npy(os.fspath(path))


def read_npz(path: PathLike, name: str) -> Array:
    return _core.read_npz(os.fspath(path), name)


def npz_names(path: PathLike) -> list[str]:
    return _core.npz_names(os.fspath(path))


def write_npy(path: PathLike, array: Any) -> None:
    """
    >>> import pathlib, tempfile
    >>> import pantala as pn
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "a.npy"
    >>> pn.data.write_npy(file, [[1.0, 2.0]])
    >>> pn.data.read_npy(file)
    array([[1., 2.]])
    """
    _core.write_npy(os.fspath(path), as_array(array))


def read_safetensors(path: PathLike, name: str) -> Array:
    """A tensor of what Weights.open takes, f16 and bf16 as f32."""
    return _core.read_safetensors(os.fspath(path), name)


def safetensors_names(path: PathLike) -> list[str]:
    return _core.safetensors_names(os.fspath(path))
