"""Layers: functions that apply ops and name the parameters that these need. Names, layouts and first
values are those of PyTorch's modules: linear("fc1", x, 10) makes fc1.weight [10, in] and fc1.bias [10].

>>> import pantala as pn
>>> g = pn.Graph()
>>> h = pn.relu(pn.nn.linear("fc1", g.input("x", (8, 32)), 16))
>>> [leaf.name for leaf in g.leaves("parameter")], h.shape
(['fc1.weight', 'fc1.bias'], (8, 16))
"""

from __future__ import annotations

from typing import Any, NamedTuple

from . import _pantala as _core
from ._op_parts import Ints, dtype_name, int_list
from ._tensor import Tensor
from ._types import DType, DTypeLike
from .errors import TypeError, fail


def _x(what: str, x: Any) -> _core.Tensor:
    if not isinstance(x, Tensor):
        raise fail(TypeError, f"{what}: x is a {type(x).__name__}, not a tensor")
    return x._core


def activation_names() -> list[str]:
    """What `activate` and the layers take."""
    return _core.activation_names()


def activate(x: Tensor, activation: str) -> Tensor:
    """The activation of this name."""
    return Tensor(_core.nn_activate(_x("activate", x), activation))


def dropout(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """x itself outside training; otherwise each element is zeroed with probability p."""
    return Tensor(_core.nn_dropout(_x("dropout", x), p, training))


# --- products


def linear(name: str, x: Tensor, out: int, bias: bool = True) -> Tensor:
    """x [..., in] to [..., out]."""
    return Tensor(_core.nn_linear(name, _x("linear", x), out, bias))


def _conv_options(stride: Ints, padding: Ints, dilation: Ints, groups: int, bias: bool) -> Any:
    lists = {"stride": int_list(stride), "padding": int_list(padding)}
    return {**lists, "dilation": int_list(dilation), "groups": groups, "bias": bias}


def conv1d(
    name: str,
    x: Tensor,
    out: int,
    kernel: Ints,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
    bias: bool = True,
) -> Tensor:
    """x [batch, in, length]; weight [out, in / groups, kernel]."""
    options = _conv_options(stride, padding, dilation, groups, bias)
    return Tensor(_core.nn_conv(1, name, _x("conv1d", x), out, int_list(kernel), options))


def conv2d(
    name: str,
    x: Tensor,
    out: int,
    kernel: Ints,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
    bias: bool = True,
) -> Tensor:
    """x [batch, in, height, width]; weight [out, in / groups, height, width].

    >>> import pantala as pn
    >>> pn.nn.conv2d("c", pn.Graph().input("x", (2, 3, 8, 8)), 4, 3, padding=1).shape
    (2, 4, 8, 8)
    """
    options = _conv_options(stride, padding, dilation, groups, bias)
    return Tensor(_core.nn_conv(2, name, _x("conv2d", x), out, int_list(kernel), options))


def conv_transpose1d(
    name: str,
    x: Tensor,
    out: int,
    kernel: Ints,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
    bias: bool = True,
) -> Tensor:
    """x [batch, in, length]; weight [in, out / groups, kernel]."""
    options = _conv_options(stride, padding, dilation, groups, bias)
    options["output_padding"] = int_list(output_padding)
    x_core = _x("conv_transpose1d", x)
    return Tensor(_core.nn_conv_transpose(1, name, x_core, out, int_list(kernel), options))


def conv_transpose2d(
    name: str,
    x: Tensor,
    out: int,
    kernel: Ints,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
    bias: bool = True,
) -> Tensor:
    """x [batch, in, height, width]; weight [in, out / groups, height, width]."""
    options = _conv_options(stride, padding, dilation, groups, bias)
    options["output_padding"] = int_list(output_padding)
    x_core = _x("conv_transpose2d", x)
    return Tensor(_core.nn_conv_transpose(2, name, x_core, out, int_list(kernel), options))


def mlp(name: str, x: Tensor, sizes: Ints, activation: str = "relu") -> Tensor:
    """Linear layers of these output sizes with the activation between them, named as in
    torch.nn.Sequential: name.0, name.2, ..."""
    return Tensor(_core.nn_mlp(name, _x("mlp", x), int_list(sizes), activation))


def embedding(
    name: str, index: Tensor, count: int, size: int, dtype: DTypeLike = DType.f32
) -> Tensor:
    """Rows of weight [count, size]: index [...] to [..., size]."""
    index_core = _x("embedding", index)
    return Tensor(_core.nn_embedding(name, index_core, count, size, dtype_name(dtype)))


# --- normalisations


def layer_norm(
    name: str, x: Tensor, eps: float = 1e-5, affine: bool = True, bias: bool = True
) -> Tensor:
    """Over the last axis."""
    options = {"eps": eps, "affine": affine, "bias": bias}
    return Tensor(_core.nn_layer_norm(name, _x("layer_norm", x), options))


def rms_norm(
    name: str, x: Tensor, eps: float = 1e-5, affine: bool = True, bias: bool = True
) -> Tensor:
    """Over the last axis; it never has a bias."""
    options = {"eps": eps, "affine": affine, "bias": bias}
    return Tensor(_core.nn_rms_norm(name, _x("rms_norm", x), options))


def group_norm(
    name: str, x: Tensor, groups: int, eps: float = 1e-5, affine: bool = True, bias: bool = True
) -> Tensor:
    """Channels are axis 1."""
    options = {"eps": eps, "affine": affine, "bias": bias}
    return Tensor(_core.nn_group_norm(name, _x("group_norm", x), groups, options))


def batch_norm(
    name: str,
    x: Tensor,
    training: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
    frozen: bool = False,
) -> Tensor:
    """Over all axes but the channels, axis 1. In training the running statistics are updated."""
    x_core = _x("batch_norm", x)
    return Tensor(_core.nn_batch_norm(name, x_core, training, momentum, eps, frozen))


# --- recurrent layers


class RecurrentOutput(NamedTuple):
    """The output of the last layer for all steps, and the last states of all layers."""

    output: Tensor
    h_n: Tensor


class LstmOutput(NamedTuple):
    """The output of the last layer for all steps, and the last states of all layers."""

    output: Tensor
    h_n: Tensor
    c_n: Tensor


def _recurrent_options(h0: Tensor | None, c0: Tensor | None, **options: Any) -> dict[str, Any]:
    for name, state in (("h0", h0), ("c0", c0)):
        if state is not None:
            options[name] = _x(name, state)
    return options


def lstm(
    name: str,
    x: Tensor,
    hidden: int,
    layers: int = 1,
    bias: bool = True,
    batch_first: bool = False,
    bidirectional: bool = False,
    dropout: float = 0.0,
    training: bool = True,
    h0: Tensor | None = None,
    c0: Tensor | None = None,
) -> LstmOutput:
    """x [steps, batch, size] to [steps, batch, directions * hidden], as torch.nn.LSTM."""
    options = _recurrent_options(
        h0,
        c0,
        layers=layers,
        bias=bias,
        batch_first=batch_first,
        bidirectional=bidirectional,
        dropout=dropout,
        training=training,
    )
    return LstmOutput(*map(Tensor, _core.nn_lstm(name, _x("lstm", x), hidden, options)))


def gru(
    name: str,
    x: Tensor,
    hidden: int,
    layers: int = 1,
    bias: bool = True,
    batch_first: bool = False,
    bidirectional: bool = False,
    dropout: float = 0.0,
    training: bool = True,
    h0: Tensor | None = None,
) -> RecurrentOutput:
    """The same with three gates, as torch.nn.GRU."""
    options = _recurrent_options(
        h0,
        None,
        layers=layers,
        bias=bias,
        batch_first=batch_first,
        bidirectional=bidirectional,
        dropout=dropout,
        training=training,
    )
    return RecurrentOutput(*map(Tensor, _core.nn_gru(name, _x("gru", x), hidden, options)))


def rnn(
    name: str,
    x: Tensor,
    hidden: int,
    activation: str = "tanh",
    layers: int = 1,
    bias: bool = True,
    batch_first: bool = False,
    bidirectional: bool = False,
    dropout: float = 0.0,
    training: bool = True,
    h0: Tensor | None = None,
) -> RecurrentOutput:
    """Without gates, as torch.nn.RNN: the activation is tanh or relu."""
    options = _recurrent_options(
        h0,
        None,
        layers=layers,
        bias=bias,
        batch_first=batch_first,
        bidirectional=bidirectional,
        dropout=dropout,
        training=training,
    )
    x_core = _x("rnn", x)
    return RecurrentOutput(*map(Tensor, _core.nn_rnn(name, x_core, hidden, activation, options)))


# --- transformers


def multi_head_attention(
    name: str,
    query: Tensor,
    key: Tensor | None = None,
    value: Tensor | None = None,
    heads: int = 1,
    causal: bool = False,
    bias: bool = True,
    dropout: float = 0.0,
    training: bool = True,
    mask: Tensor | None = None,
) -> Tensor:
    """As torch.nn.MultiheadAttention with batch_first; without a key of query itself. A bool mask
    keeps where it is true (torch drops there), a float mask is added."""
    what = "multi_head_attention"
    query_core = _x(what, query)
    key_core = query_core if key is None else _x(what, key)
    value_core = key_core if value is None else _x(what, value)
    options: dict[str, Any] = {"heads": heads, "causal": causal, "bias": bias, "dropout": dropout}
    options.update(training=training, mask=None if mask is None else _x("mask", mask))
    return Tensor(
        _core.nn_multi_head_attention(name, query_core, key_core, value_core, options)
    )


def transformer_encoder_layer(
    name: str,
    x: Tensor,
    heads: int = 1,
    feed_forward: int = 2048,
    dropout: float = 0.1,
    activation: str = "relu",
    norm_first: bool = False,
    causal: bool = False,
    bias: bool = True,
    training: bool = True,
    eps: float = 1e-5,
    mask: Tensor | None = None,
) -> Tensor:
    """As torch.nn.TransformerEncoderLayer with batch_first."""
    options: dict[str, Any] = {"heads": heads, "feed_forward": feed_forward, "dropout": dropout}
    options.update(activation=activation, norm_first=norm_first, causal=causal, bias=bias)
    options.update(training=training, eps=eps, mask=None if mask is None else _x("mask", mask))
    x_core = _x("transformer_encoder_layer", x)
    return Tensor(_core.nn_transformer_encoder_layer(name, x_core, options))
