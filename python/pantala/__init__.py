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

from . import (  # noqa: E402
    _more_ops,
    data as data,
    errors as errors,
    init as init,
    nn as nn,
    optim as optim,
    rates as rates,
    run as run,
    zoo as zoo,
)
from . import _ops as ops  # noqa: E402
from ._callbacks import (  # noqa: E402
    Activity as Activity,
    Callback as Callback,
    EpochStats as EpochStats,
    StepMetrics as StepMetrics,
)
from ._compile import (  # noqa: E402
    CompiledPlan as CompiledPlan,
    CompileOptions as CompileOptions,
    ParameterGroup as ParameterGroup,
    Report as Report,
    TrainingStep as TrainingStep,
    compile as compile,
    load_plan as load_plan,
    make_training_step as make_training_step,
)
from ._generate import (  # noqa: E402
    Generated as Generated,
    Generator as Generator,
    Sampler as Sampler,
)
from ._graph import (  # noqa: E402
    Gradients as Gradients,
    Graph as Graph,
    Leaf as Leaf,
    differentiate as differentiate,
    evaluate as evaluate,
    parse_graph as parse_graph,
    verify as verify,
)
from ._history import (  # noqa: E402
    Evaluation as Evaluation,
    History as History,
    Plot as Plot,
)
from ._inspect import (  # noqa: E402
    Table as Table,
    Tables as Tables,
    explain as explain,
    inspect as inspect,
)
from ._onnx import (  # noqa: E402
    ExportedBatch as ExportedBatch,
    OnnxModel as OnnxModel,
    export_onnx as export_onnx,
    load_onnx as load_onnx,
)
from ._ops import *  # noqa: E402, F403
from ._more_ops import *  # noqa: E402, F403
from ._optimizer import Optimizer as Optimizer  # noqa: E402
from ._rates import (  # noqa: E402
    Plateau as Plateau,
    PlateauOptions as PlateauOptions,
    RateSchedule as RateSchedule,
)
from ._session import (  # noqa: E402
    Plan as Plan,
    Profile as Profile,
    Session as Session,
    Type as Type,
    build_inference_session as build_inference_session,
    build_inference_session_cached as build_inference_session_cached,
    build_session as build_session,
    build_session_cached as build_session_cached,
    build_session_unoptimized as build_session_unoptimized,
)
from ._tensor import Tensor as Tensor  # noqa: E402
from ._torch import (  # noqa: E402
    TorchTrainer as TorchTrainer,
    from_torch as from_torch,
)
from ._trainer import (  # noqa: E402
    Checkpoints as Checkpoints,
    EarlyStopping as EarlyStopping,
    Run as Run,
    Trainer as Trainer,
)
from ._types import (  # noqa: E402
    DType as DType,
    dtype as dtype,
)
from ._weights import (  # noqa: E402
    LoadReport as LoadReport,
    Weights as Weights,
)
from .errors import *  # noqa: E402, F403
from .init import Initializer as Initializer  # noqa: E402

f32, f64, f16, bf16 = DType.f32, DType.f64, DType.f16, DType.bf16
i32, i64, u8, boolean = DType.i32, DType.i64, DType.u8, DType.boolean
__version__: str = _core.version()


def set_log_level(level: str) -> None:
    """Of the lines on stderr: trace, debug, info, warning (at first), error or off."""
    _core.set_log_level(level)


from . import _guard  # noqa: E402

_guard.install(__name__)
