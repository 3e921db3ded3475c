"""The loss of a module's graph: by name, as a function of tensors, or the module's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Union

from . import _more_ops, _ops
from ._graph import Graph
from ._tensor import Tensor
from ._types import DType, as_array, dtype
from .errors import TypeError, fail
from .zoo import Model

if TYPE_CHECKING:
    from ._torch_export import Exported

Outputs = Union[Tensor, dict[str, Tensor]]
LABELS = "labels"


def _kl_div(log_probabilities: Tensor, target: Tensor) -> Tensor:
    """As PyTorch's: of log-probabilities, the mean over all elements; a target of 0 adds 0."""
    absent = target == 0
    surprise = _ops.log(_ops.where(absent, 1.0, target)) - log_probabilities
    return (target * _ops.where(absent, 0.0, surprise)).mean()


# As the functions of torch.nn.functional with the same names have it; PyTorch has no "rmse" and no
# "kl_div_with_logits".
LOSSES: dict[str, Callable[..., Tensor]] = {
    "cross_entropy": _more_ops.cross_entropy,
    "nll": _ops.nll_loss,
    "mse": _ops.mse_loss,
    "rmse": _ops.rmse_loss,
    "l1": _ops.l1_loss,
    "huber": _ops.huber_loss,
    "smooth_l1": _ops.smooth_l1_loss,
    "bce": _ops.bce,
    "bce_with_logits": _ops.bce_with_logits,
    "kl_div": _kl_div,
    "kl_div_with_logits": _ops.kl_div_with_logits,
}
OF_CLASSES = ("cross_entropy", "nll")


class LossPlan:
    """How labels look and what is computed of them and the module's outputs."""

    def __init__(self, loss: Any, example_labels: Any, exported: Exported) -> None:
        if isinstance(loss, str):
            loss = loss.removesuffix("_loss") if loss.endswith("_loss") else loss
            if loss not in LOSSES:
                raise fail(TypeError, f"there is no loss '{loss}'; there are {', '.join(LOSSES)}")
        self._loss = loss
        self._labels = None if example_labels is None else as_array(example_labels)
        self.class_axis = 1
        self.measured = ""
        if loss is None and len(exported.input_names) < 2:
            raise fail(
                TypeError,
                "loss=None takes the module's own loss; then the last of its inputs is the labels",
            )
        names = exported.input_names
        self.data_inputs = names[:-1] if loss is None else names
        self._set_form(exported)

    def _set_form(self, exported: Exported) -> None:
        """Whether classes stand on the last axis of the predictions."""
        shape = exported.output_shapes[0]
        labels = None if self._labels is None else tuple(self._labels.shape)
        if self._loss in OF_CLASSES and len(shape) > 2 and labels == shape[:-1]:
            self.class_axis = -1

    # --- the graph

    def model(self, graph: Graph, batch: int) -> Model:
        """The graph with labels and loss; the prediction is the module's first output."""
        outputs = graph.outputs
        first = next(iter(outputs.values()))
        data = graph.leaf(self.data_inputs[0])
        if self._loss is None:
            if first.shape != ():
                raise fail(TypeError, f"the module's own loss is a single number, got {first!r}")
            names = [leaf.name for leaf in graph.leaves("input")]
            labels = graph.leaf(names[-1])
            return Model(graph, data, labels, first)
        labels = self._labels_of(graph, first, batch)
        loss = self._computed(first if len(outputs) == 1 else outputs, labels)
        return Model(graph, data, labels, loss, prediction=first)

    def _labels_of(self, graph: Graph, output: Tensor, batch: int) -> Tensor:
        if self._labels is not None:
            shape = (batch, *self._labels.shape[1:])
            return graph.input(LABELS, shape, dtype(str(self._labels.dtype)))
        if not isinstance(self._loss, str):
            return graph.input(LABELS, (batch,), DType.i64)
        if self._loss in OF_CLASSES:
            return graph.input(LABELS, (output.shape[0], *output.shape[2:]), DType.i64)
        return graph.input(LABELS, output.shape, output.dtype)

    def _computed(self, outputs: Outputs, labels: Tensor) -> Tensor:
        if not isinstance(self._loss, str):
            made = self._loss(outputs, labels)
            if not isinstance(made, Tensor) or made.shape != ():
                raise fail(TypeError, f"the loss's function gives a single number, got {made!r}")
            return made
        output = outputs if isinstance(outputs, Tensor) else next(iter(outputs.values()))
        if self.class_axis == -1:
            output = output.reshape(-1, output.shape[-1])
            labels = labels.reshape(-1)
        return LOSSES[self._loss](output, labels)
