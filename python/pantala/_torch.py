"""Modules of PyTorch, trained here: exported, read as a graph with the module's own names, joined with
a loss and an optimizer, and written back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Union

from . import _torch_loss as _loss
from ._compile import CompileOptions, ParameterGroup
from ._history import Evaluation
from ._optimizer import Optimizer
from ._rates import PlateauOptions, RateSchedule
from ._session import Session
from ._tensor import Tensor
from ._trainer import Run, Trainer
from ._torch_export import Exported
from .errors import TypeError, fail, not_pickled
from .zoo import Model

if TYPE_CHECKING:
    import torch
    from typing_extensions import Unpack

# Their roundings are up to six times those of the other algorithms.
ROUNDING_MORE = [
    "convolution-by-winograd4",
    "convolution-input-gradient-by-winograd4",
    "convolution-weight-gradient-by-winograd4",
]
LossLike = Union[str, Callable[..., Tensor], None]


class TorchTrainer:
    """Trains a module's graph; made by from_torch(). The module itself stays as it is until
    write_back()."""

    def __init__(
        self,
        exported: Exported,
        loss: LossLike,
        example_labels: Any,
        optimizer: Optimizer,
        rate_schedule: RateSchedule | None,
        plateau: PlateauOptions | None,
        seed: int,
        options: CompileOptions,
    ) -> None:
        self._exported = exported
        plan = _loss.LossPlan(loss, example_labels, exported)
        self._plan = plan

        def model(batch: int, phase: str) -> Model:
            return plan.model(exported.graph(batch, phase), batch)

        groups = [ParameterGroup(name, frozen=True) for name in exported.frozen_names()]
        # A frozen norm in training mode goes on to follow its batches, as PyTorch has it.
        options.setdefault("kept_statistics", "none")
        options.setdefault("rules_off", ROUNDING_MORE)
        options["groups"] = [*groups, *options.get("groups", ())]
        self.trainer = Trainer(
            model,
            exported.batch,
            optimizer=optimizer,
            rate_schedule=rate_schedule,
            plateau=plateau,
            more_inputs=plan.data_inputs[1:],
            class_axis=plan.class_axis,
            measured=plan.measured,
            seed=seed,
            **options,
        )
        self.warnings: list[str] = exported.warnings
        self.read_module()

    def read_module(self) -> None:
        """Takes the module's weights and statistics as they are now."""
        session = self.session
        session.load_weights(self._exported.file_weights, strict=False)
        session.load_weights(self._exported.values(session), strict=False)

    # --- training

    def step(self, *batch: Any) -> float | None:
        """One training step with (inputs..., labels); gives the loss before the update."""
        return self.trainer.step(*batch)

    def fit(self, data: Any, *, epochs: int = 1, **options: Any) -> Run:
        """As Trainer.fit: a DataLoader, arrays, tensors, an iterable of batches."""
        if options.get("validation") is not None:
            self._exported.check("evaluation")
        return self.trainer.fit(data, epochs=epochs, **options)

    def evaluate(self, data: Any) -> Evaluation:
        """Loss and metrics, with the module in evaluation mode."""
        return self.trainer.evaluate(data)

    def predict(self, data: Any) -> Any:
        """The module's outputs in evaluation mode, as an array."""
        return self.trainer.predict(data)

    @property
    def session(self) -> Session:
        return self.trainer.session

    # --- back to torch

    def state_dict(self) -> dict[str, torch.Tensor]:
        """All that the module's own state_dict has, with the values that were trained."""
        return self._exported.state_dict(self.session)

    def write_back(self) -> torch.nn.Module:
        """Loads state_dict() into the module, and gives it."""
        module = self._exported.module
        module.load_state_dict(self.state_dict())
        return module

    def __reduce__(self) -> Any:
        raise not_pickled("a trainer", "write_back() gives the module its weights, which can be saved")

    def __repr__(self) -> str:
        return f"TorchTrainer({type(self._exported.module).__name__}, {self.trainer!r})"


def from_torch(
    module: torch.nn.Module,
    example_inputs: Any,
    *,
    loss: LossLike = "cross_entropy",
    optimizer: Optimizer | None = None,
    example_labels: Any = None,
    rate_schedule: RateSchedule | None = None,
    plateau: PlateauOptions | None = None,
    seed: int = 0,
    **options: Unpack[CompileOptions],
) -> TorchTrainer:
    """A trainer of a module of PyTorch.

    example_inputs: a tensor, a tuple of them, or a dict by the names of forward(); their first axis is
        the batch, of 2 or more
    loss: the name of a loss ("cross_entropy", "mse", ...), a function of the module's outputs and the
        labels as tensors of Pantala, or None where the module gives its loss itself and its last
        input is the labels
    optimizer: of pantala.optim; Adam unless it is given
    example_labels: labels of such a batch, where the loss does not tell their shape
    options: CompileOptions; `rules_off` is the convolutions by Winograd's F(4, 3) unless it is given:
        with `rules_off=()` they are faster, and round more than PyTorch does

    Parameters that need no gradient stay as they are. Batch norm and dropout train as in
    module.train(), where submodules that are in eval() stay so if the module is in train() itself.

        trainer = pn.from_torch(module, torch.zeros(64, 3, 32, 32), loss="cross_entropy",
                                optimizer=pn.optim.adamw(1e-3))
        trainer.fit(DataLoader(dataset, 64, shuffle=True), epochs=3)
        trainer.write_back()
    """
    from . import optim

    if not isinstance(example_inputs, (tuple, list, Mapping)):
        example_inputs = (example_inputs,)
    if not isinstance(loss, str) and loss is not None and not callable(loss):
        raise fail(TypeError, f"loss is a name, a function or None, not a {type(loss).__name__}")
    if str(getattr(loss, "__module__", "")).startswith("torch."):
        told = getattr(loss, "__name__", type(loss).__name__)
        raise fail(TypeError, f"{told} is of tensors of torch; loss is a name, as 'cross_entropy', or a function of pn's tensors")
    exported = Exported(module, example_inputs, reads_all=callable(loss))
    return TorchTrainer(
        exported,
        loss,
        example_labels,
        optimizer or optim.adam(),
        rate_schedule,
        plateau,
        seed,
        options,
    )


