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

import numpy.typing as npt

from . import _pantala as _core
from ._graph import Graph
from ._tensor import Tensor
from ._types import DType, literal
from ._weights import PathLike, Weights
from .errors import TypeError, fail

Array = npt.NDArray[Any]


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
    target_scale: tuple[Sequence[float], Sequence[float]] | None = None,
) -> Model:
    """Linear layers fc1, fc2, ... with an activation between them.

    task: "classification", or "regression" of `targets` numbers per item
    target_scale: (means, deviations) of a regression's labels, in which the layers learn

    >>> import pantala as pn
    >>> pn.zoo.mlp(4, 3, (8,), task="regression", targets=2, target_scale=((1, 2), (3, 4))).prediction
    Tensor(f32[4,2])
    """
    scale = None if target_scale is None else tuple(list(part) for part in target_scale)
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
                "target_scale": scale,
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


def resnet18_weight_names(form: str = "folded") -> list[str]:
    """The parameters' names, in the order of the graph."""
    return _core.resnet_weight_names(18, _is_folded(form))


def resnet50_weight_names(form: str = "folded") -> list[str]:
    return _core.resnet_weight_names(50, _is_folded(form))


def _is_folded(form: str) -> bool:
    if form not in ("folded", "batch_norm"):
        raise fail(TypeError, f"form is 'folded' or 'batch_norm', not {form!r}")
    return form == "folded"


def fold_batch_norm(
    weight: Any, gamma: Any, beta: Any, mean: Any, var: Any, eps: float = 1e-5
) -> tuple[Array, Array]:
    """A convolution's weight and the batch norm behind it as one weight and bias.

    >>> import numpy as np
    >>> import pantala as pn
    >>> weight, bias = pn.zoo.fold_batch_norm(np.ones((1, 2)), *np.array([[3.0], [1], [2], [4]]), eps=0)
    >>> weight, bias
    (array([[1.5, 1.5]]), array([-2.]))
    """
    return _core.fold_batch_norm(
        literal(weight), literal(gamma), literal(beta), literal(mean), literal(var), eps
    )


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


def smollm2_135m() -> LlamaConfig:
    return llama_config("smollm2-135m")


def smollm2_360m() -> LlamaConfig:
    return llama_config("smollm2-360m")


def llama_bytes() -> LlamaConfig:
    """A small one over bytes, for training on text files."""
    return llama_config("llama-bytes")


def resized(
    config: LlamaConfig,
    *,
    width: int = 0,
    layers: int = 0,
    heads: int = 0,
    kv_heads: int = 0,
    feed_forward: int = 0,
) -> LlamaConfig:
    """Other sizes than a preset's; what is 0 is the preset's own or follows from the width.

    >>> import pantala as pn
    >>> pn.zoo.resized(pn.zoo.llama_bytes(), width=64, layers=2).hidden
    64
    """
    sizes = [width, layers, heads, kv_heads, feed_forward]
    return _llama_config(_core.resized_llama(config._as_core(), sizes))


def parse_llama_config(json: str, file: str = "<text>") -> LlamaConfig:
    """The text of a config.json; `file` is its name in messages."""
    return _llama_config(_core.parse_llama_config(json, file))


def read_llama_config(path: PathLike) -> LlamaConfig:
    """Hugging Face's config.json."""
    return _llama_config(_core.read_llama_config(os.fspath(path)))


def llama(config: LlamaConfig, batch: int = 1, sequence: int = 128) -> Model:
    """Inputs `tokens` and `labels` [batch, sequence]; the loss is the mean cross entropy."""
    return _model(_core.zoo_llama(config._as_core(), batch, sequence))


def llama_cached(
    config: LlamaConfig, batch: int = 1, tokens: int = 1, cache: int = 2048
) -> Graph:
    """A part of a sequence behind what stands in the cache, as Generator runs it."""
    return Graph(_of=_core.llama_cached(config._as_core(), batch, tokens, cache))


@dataclass(frozen=True)
class WhisperConfig:
    """Sizes of Whisper's encoder.

    >>> import pantala as pn
    >>> pn.zoo.WhisperConfig.base().d_model
    512
    """

    d_model: int = 384
    n_heads: int = 6
    n_layers: int = 4
    ffn_dim: int = 1536
    n_mels: int = 80
    max_source_positions: int = 1500
    layer_norm_eps: float = 1e-5

    @staticmethod
    def tiny() -> WhisperConfig:
        return _whisper_config(_core.WhisperConfig.tiny())

    @staticmethod
    def base() -> WhisperConfig:
        return _whisper_config(_core.WhisperConfig.base())

    @staticmethod
    def small() -> WhisperConfig:
        return _whisper_config(_core.WhisperConfig.small())

    def _as_core(self) -> _core.WhisperConfig:
        core = _core.WhisperConfig()
        for entry in fields(self):
            setattr(core, entry.name, getattr(self, entry.name))
        return core


def _whisper_config(core: _core.WhisperConfig) -> WhisperConfig:
    return WhisperConfig(**{entry.name: getattr(core, entry.name) for entry in fields(WhisperConfig)})


def _whisper(config: WhisperConfig | str) -> _core.WhisperConfig:
    if isinstance(config, WhisperConfig):
        return config._as_core()
    if config not in ("tiny", "base", "small"):
        raise fail(TypeError, f"a Whisper is 'tiny', 'base', 'small' or a WhisperConfig, not {config!r}")
    return getattr(_core.WhisperConfig, config)()


def whisper_layers(mel: Tensor, config: WhisperConfig | str) -> Tensor:
    """The encoder's layers on mel [batch, n_mels, frames]: [batch, length, d_model]."""
    return Tensor(_core.whisper_layers(mel._core, _whisper(config)))


def whisper_encoder(
    config: WhisperConfig | str = "tiny", batch: int = 1, frames: int = 3000
) -> Graph:
    """For inference: input "mel", output "last_hidden_state"."""
    return Graph(_of=_core.whisper_encoder(_whisper(config), batch, frames))


def whisper_training(
    config: WhisperConfig | str = "tiny",
    batch: int = 1,
    frames: int = 3000,
    classes: int = 64,
    labels: str = "classes",
) -> Model:
    """Whisper's encoder ("tiny", "base", "small") with a class per position."""
    options = {"classes": classes, "labels": labels}
    return _model(_core.whisper_training(_whisper(config), batch, frames, options))


def whisper_weight_names(config: WhisperConfig | str = "tiny") -> list[str]:
    return _core.whisper_weight_names(_whisper(config))
