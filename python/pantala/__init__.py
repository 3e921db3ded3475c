"""Pantala trains neural networks: a graph is differentiated, joined with its optimizer, compiled into
kernels for this machine, and run step after step.

>>> import numpy as np
>>> import pantala as pn
>>> g = pn.Graph()
>>> x = g.input("x", (64, 784))
>>> labels = g.input("labels", 64, pn.i64)
>>> h = pn.relu(pn.nn.linear("fc1", x, 128))
>>> loss = pn.cross_entropy(pn.nn.linear("fc2", h, 10), labels)
>>> session = pn.build_session(g, loss, optimizer=pn.optim.adam(1e-3))
>>> images = np.zeros((64, 784), np.float32)
>>> classes = np.zeros(64, np.int64)
>>> before = session.step(x=images, labels=classes)
>>> session.step(x=images, labels=classes) < before
True
"""

from __future__ import annotations

import os as _os

from . import _pantala as _core

_core.set_package_folder(_os.path.dirname(_os.path.abspath(__file__)) + _os.sep)

from . import _more_ops, data, errors, init, nn, optim, rates, run, zoo  # noqa: E402
from . import _ops as ops  # noqa: E402
from ._callbacks import Activity, Callback, EpochStats, StepMetrics  # noqa: E402
from ._compile import (  # noqa: E402
    CompiledPlan,
    CompileOptions,
    ParameterGroup,
    Report,
    compile,
    load_plan,
)
from ._generate import Generated, Generator  # noqa: E402
from ._graph import (  # noqa: E402
    Gradients,
    Graph,
    Leaf,
    differentiate,
    evaluate,
    parse_graph,
    verify,
)
from ._history import Evaluation, History, Plot  # noqa: E402
from ._inspect import Table, Tables, explain, inspect  # noqa: E402
from ._onnx import OnnxModel, export_onnx, load_onnx  # noqa: E402
from ._ops import *  # noqa: E402, F403
from ._more_ops import *  # noqa: E402, F403
from ._optimizer import Optimizer  # noqa: E402
from ._rates import Plateau, PlateauOptions, RateSchedule  # noqa: E402
from ._session import (  # noqa: E402
    Plan,
    Profile,
    Session,
    Type,
    build_inference_session,
    build_inference_session_cached,
    build_session,
    build_session_cached,
    build_session_unoptimized,
)
from ._tensor import Tensor  # noqa: E402
from ._torch import TorchTrainer, from_torch  # noqa: E402
from ._trainer import Checkpoints, EarlyStopping, Run, Trainer  # noqa: E402
from ._types import DType, dtype  # noqa: E402
from ._weights import LoadReport, Weights  # noqa: E402
from .errors import *  # noqa: E402, F403
from .init import Initializer  # noqa: E402

f32, f64, f16, bf16 = DType.f32, DType.f64, DType.f16, DType.bf16
i32, i64, u8, boolean = DType.i32, DType.i64, DType.u8, DType.boolean
__version__: str = _core.version()


def set_log_level(level: str) -> None:
    """Of the lines on stderr: trace, debug, info, warning (at first), error or off."""
    _core.set_log_level(level)
