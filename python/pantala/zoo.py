"""The model zoo: whole graphs with PyTorch's parameter names.

>>> import pantala as pn
>>> model = pn.zoo.lenet(batch=8)
>>> model.input, model.logits
(Tensor(f32[8,1,28,28]), Tensor(f32[8,10]))
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from . import _pantala as _core
from ._graph import Graph
from ._tensor import Tensor
from ._types import DType
from ._weights import PathLike, Weights


@dataclass(frozen=True)
class Model:
    """A graph, and which of its values are which. A classifier has logits, a regression a
    prediction."""

    graph: Graph
    input: Tensor
    labels: Tensor | None
    loss: Tensor | None
    logits: Tensor | None = None
    prediction: Tensor | None = None

    def __repr__(self) -> str:
        return f"Model({self.input!r}, {self.graph!r})"


def _model(core: _core.Model) -> Model:
    def tensor(value: _core.Tensor) -> Tensor | None:
        return Tensor(value) if _core.is_valid(value) else None

    return Model(
        Graph(_of=core.graph),
        Tensor(core.input),
        tensor(core.labels),
        tensor(core.loss),
        tensor(core.logits),
        tensor(core.prediction),
    )


@dataclass(frozen=True)
class Preset:
    """A model that is known by a name, with what it takes if nothing else is asked for."""

    name: str
    about: str
    dtype: DType
    item: tuple[int, ...]
    classes: int


def presets() -> list[Preset]:
    return [
        Preset(name, about, DType(dtype), item, classes)
        for name, about, dtype, item, classes in _core.zoo_presets()
    ]


def preset_names() -> list[str]:
    return [preset.name for preset in presets()]


def model(
    name: str,
    batch: int = 1,
    *,
    item: Sequence[int] = (),
    classes: int = 0,
    training: bool = True,
) -> Model:
    """The model of this name; what is not said is the preset's own."""
    return _model(_core.zoo_model(name, batch, list(item), classes, training))


def mlp(
    batch: int = 64,
    inputs: int = 784,
    hidden: Sequence[int] = (128,),
    classes: int = 10,
    activation: str = "relu",
    task: str = "classification",
    targets: int = 1,
) -> Model:
    """Linear layers fc1, fc2, ... with an activation between them."""
    return _model(
        _core.zoo_mlp(
            {
                "batch": batch,
                "inputs": inputs,
                "hidden": list(hidden),
                "classes": classes,
                "activation": activation,
                "task": task,
                "targets": targets,
            }
        )
    )


def lenet(batch: int = 64, channels: int = 1, size: int = 28, classes: int = 10) -> Model:
    """Two convolutions with ReLU and pooling, then two linear layers; cross entropy."""
    return _model(_core.zoo_lenet(batch, channels, size, classes))


def _resnet(layers: int, training: bool, batch: int, options: dict[str, Any]) -> Model:
    return _model(_core.zoo_resnet(layers, training, batch, options))


def _resnet_options(
    form: str, channels: int, height: int, width: int, classes: int, labels: str
) -> dict[str, Any]:
    return {
        "form": form,
        "channels": channels,
        "height": height,
        "width": width,
        "classes": classes,
        "labels": labels,
    }


def resnet18(
    batch: int = 1,
    form: str = "folded",
    channels: int = 3,
    height: int = 224,
    width: int = 224,
    classes: int = 1000,
    labels: str = "classes",
) -> Model:
    """For inference, as torchvision's; `form` is "folded" or "batch_norm"."""
    options = _resnet_options(form, channels, height, width, classes, labels)
    return _resnet(18, False, batch, options)


def resnet50(
    batch: int = 1,
    form: str = "folded",
    channels: int = 3,
    height: int = 224,
    width: int = 224,
    classes: int = 1000,
    labels: str = "classes",
) -> Model:
    """For inference, as torchvision's; `form` is "folded" or "batch_norm"."""
    options = _resnet_options(form, channels, height, width, classes, labels)
    return _resnet(50, False, batch, options)


def resnet18_training(
    batch: int,
    form: str = "folded",
    channels: int = 3,
    height: int = 224,
    width: int = 224,
    classes: int = 1000,
    labels: str = "classes",
) -> Model:
    """With the mean cross entropy of labels; `form="batch_norm"` is torchvision's own."""
    options = _resnet_options(form, channels, height, width, classes, labels)
    return _resnet(18, True, batch, options)


def resnet50_training(
    batch: int,
    form: str = "folded",
    channels: int = 3,
    height: int = 224,
    width: int = 224,
    classes: int = 1000,
    labels: str = "classes",
) -> Model:
    """With the mean cross entropy of labels; `form="batch_norm"` is torchvision's own."""
    options = _resnet_options(form, channels, height, width, classes, labels)
    return _resnet(50, True, batch, options)


def fold_resnet(weights: Weights, eps: float = 1e-5) -> Weights:
    """torchvision's tensors of a ResNet with the batch norms folded into the convolutions."""
    return Weights(_of=_core.fold_resnet(weights._core, eps))


@dataclass(frozen=True)
class LlamaConfig:
    """Sizes of a model of the Llama family."""

    vocabulary: int = 49152
    hidden: int = 576
    intermediate: int = 1536
    layers: int = 30
    heads: int = 9
    kv_heads: int = 3
    head_size: int = 0
    max_positions: int = 8192
    rope_theta: float = 100000
    rms_eps: float = 1e-5
    tied_embeddings: bool = True
    init_deviation: float = 0.02

    def _as_core(self) -> _core.LlamaConfig:
        core = _core.LlamaConfig()
        for entry in fields(self):
            setattr(core, entry.name, getattr(self, entry.name))
        return core


def _llama_config(core: _core.LlamaConfig) -> LlamaConfig:
    return LlamaConfig(**{entry.name: getattr(core, entry.name) for entry in fields(LlamaConfig)})


def llama_config(preset: str) -> LlamaConfig:
    """Of smollm2-135m, smollm2-360m or llama-bytes."""
    return _llama_config(_core.llama_preset(preset))


def read_llama_config(path: PathLike) -> LlamaConfig:
    """Hugging Face's config.json."""
    return _llama_config(_core.read_llama_config(os.fspath(path)))


def llama(config: LlamaConfig, batch: int = 1, sequence: int = 128) -> Model:
    """Inputs `tokens` and `labels` [batch, sequence]; the loss is the mean cross entropy."""
    return _model(_core.zoo_llama(config._as_core(), batch, sequence))


def whisper_training(
    size: str = "tiny", batch: int = 1, frames: int = 3000, classes: int = 64
) -> Model:
    """Whisper's encoder ("tiny", "base", "small") with a class per position."""
    return _model(_core.zoo_whisper_training(size, batch, frames, classes))
