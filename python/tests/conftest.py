"""What the tests share: the project's folder, recorded truths, and packages that may be missing."""

import importlib.util
import signal
from pathlib import Path

import numpy as np
import pytest

import pantala as pn

ROOT = Path(__file__).resolve().parents[2]


def pytest_report_header(config):
    missing = [name for name in ("torch", "torchvision", "transformers", "onnx", "pandas")
               if importlib.util.find_spec(name) is None]
    without = f"; without {', '.join(missing)}: the tests that need them are left out" if missing else ""
    return f"pantala {pn.__version__} from {Path(pn.__file__).parent}{without}"


@pytest.fixture(autouse=True, scope="session")
def interrupts():
    """A shell's background jobs are started without Ctrl-C, and runs that wait for it would not end."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def regression():
    """A graph with one linear layer and a session that trains it."""
    g = pn.Graph()
    x = g.input("x", (8, 3))
    loss = pn.mse_loss(pn.nn.linear("fc", x, 1), g.input("y", (8, 1)))
    g.output("loss", loss)
    return g, loss


@pytest.fixture
def session(regression):
    g, loss = regression
    made = pn.build_session(g, loss, optimizer=pn.optim.sgd(0.1))
    made.set_input("x", np.ones((8, 3), np.float32))
    made.set_input("y", np.zeros((8, 1), np.float32))
    return made


@pytest.fixture
def classes():
    """Items whose class is the largest of three numbers, and a trainer of them."""
    x = np.random.default_rng(0).normal(size=(96, 3)).astype(np.float32)
    return x, x.argmax(1).astype(np.int64)


def small_model(batch):
    return pn.zoo.mlp(batch, 3, (16,), 3)
