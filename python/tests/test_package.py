"""The package as a whole: types, doctests, examples, the notebook."""

import doctest
import importlib
import pkgutil
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pantala as pn
from conftest import ROOT

MODULES = [m.name for m in pkgutil.iter_modules(pn.__path__, "pantala.") if not m.name.endswith("._pantala")]


@pytest.mark.parametrize("name", ["pantala", *MODULES])
def test_examples_in_the_documentation_run(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


def test_there_are_examples():
    finder = doctest.DocTestFinder()
    tests = [t for name in ["pantala", *MODULES] for t in finder.find(importlib.import_module(name)) if t.examples]
    assert len(tests) > 40


@pytest.fixture
def typed(tmp_path):
    """A folder with the package's texts, where mypy takes them for what they are."""
    pytest.importorskip("mypy")
    folder = Path(pn.__file__).parent
    shutil.copytree(folder, tmp_path / "pantala", ignore=shutil.ignore_patterns("*.so*", "lib", "__pycache__"))
    return tmp_path


def mypy(folder, *arguments):
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder)


def test_types(typed):
    assert (typed / "pantala" / "py.typed").exists() and (typed / "pantala" / "_pantala.pyi").exists()
    run = mypy(typed, "-p", "pantala")
    assert run.returncode == 0, run.stdout


USER = """
import numpy as np
import pantala as pn

g = pn.Graph()
x = g.input("x", (4, 3))
loss = pn.mse_loss(pn.nn.linear("fc", x, 1), g.input("y", (4, 1)))
session = pn.build_session(g, loss, optimizer=pn.optim.adam(1e-3), threads=1)
value: float = session.step(x=np.zeros((4, 3), np.float32))
"""
WRONG = ["pn.softmax(x, axis='a')", "pn.optim.adam(rate=1)", "session.step().shape", "pn.mse_loss(x, x, reduction='middle')"]


def test_types_of_a_users_program(typed):
    (typed / "good.py").write_text(USER)
    (typed / "bad.py").write_text(USER + "\n".join(WRONG))
    run = mypy(typed, "good.py", "bad.py")
    errors = [line for line in run.stdout.splitlines() if "error:" in line]
    assert len(errors) == len(WRONG) and all(line.startswith("bad.py") for line in errors), run.stdout


@pytest.mark.parametrize("script", sorted((ROOT / "examples" / "python").glob("*.py")), ids=lambda p: p.stem)
def test_the_examples_run(script, tmp_path):
    text = script.read_text()
    if "torch" in text:
        pytest.importorskip("torch")
        pytest.importorskip("torchvision")
    run = subprocess.run([sys.executable, str(script), "--quick"], capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert "loss" in run.stdout or "accuracy" in run.stdout


def test_the_notebook_runs(tmp_path):
    pytest.importorskip("nbconvert")
    pytest.importorskip("ipykernel")
    import nbformat
    from nbconvert.preprocessors import ExecutePreprocessor

    notebook = nbformat.read(ROOT / "examples" / "python" / "notebook.ipynb", as_version=4)
    ExecutePreprocessor(timeout=300, kernel_name="python3").preprocess(notebook, {"metadata": {"path": str(tmp_path)}})
    outputs = [o for cell in notebook.cells for o in cell.get("outputs", [])]
    assert any("image/svg+xml" in o.get("data", {}) for o in outputs)
    assert any("text/html" in o.get("data", {}) for o in outputs)
    lines = [o for o in outputs if "epoch 10" in o.get("data", {}).get("text/plain", "")]
    shown = [o["data"]["text/plain"] for o in lines if o["output_type"] == "display_data"]
    assert len(shown) == 1 and "loss" in shown[0], f"one line of progress, as the run has left it: {shown}"
    tables = "".join("".join(o["data"]["text/html"]) for o in outputs if "text/html" in o.get("data", {}))
    assert "val_accuracy" in tables and "fc1.weight" in tables
    assert not [o for o in outputs if o["output_type"] == "stream"], "nothing is written beside it"
