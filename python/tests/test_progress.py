"""How a run shows itself: a line that updates on a terminal, one display in a notebook, nothing elsewhere;
charts and tables."""

import io
import re
import sys
import types
import xml.etree.ElementTree

import numpy as np
import pytest

import pantala as pn
from conftest import small_model


def fitted(classes, **options):
    trainer = pn.Trainer(small_model, 16, optimizer=pn.optim.adam(0.02))
    return trainer.fit(classes, epochs=3, validation=classes, **options)


class Screen(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_has_one_line_that_updates(classes, monkeypatch):
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    fitted(classes)
    written = screen.getvalue()
    assert "epoch" in written and "loss" in written
    assert "\r" in written or "\x1b[" in written, "the line is never taken back"


def test_where_nobody_watches_nothing_is_written(classes, capfd):
    fitted(classes)
    seen = capfd.readouterr()
    assert seen.out == "" and "epoch" not in seen.err


def test_progress_may_be_asked_for_and_turned_off(classes, monkeypatch, capfd):
    fitted(classes, progress=True)
    assert "epoch" in capfd.readouterr().err
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    fitted(classes, progress=False)
    assert screen.getvalue() == ""


class Page:
    """What IPython shows: displays, each with all that it was updated to."""

    def __init__(self):
        self.displays = []

    def display(self, data, raw=False, display_id=None):
        assert raw and display_id
        shown = [data["text/plain"]]
        self.displays.append(shown)
        return types.SimpleNamespace(update=lambda data, raw: shown.append(data["text/plain"]))


@pytest.fixture
def page(monkeypatch):
    made = Page()
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    ipython.display = types.ModuleType("IPython.display")
    ipython.display.display = made.display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", ipython.display)
    return made


def test_a_notebook_has_one_display_a_run(classes, page, capfd):
    fitted(classes)
    (lines,) = page.displays
    assert len(lines) > 1 and all("\x1b" not in line and "\r" not in line and "\n" not in line for line in lines)
    assert "epoch" in lines[-1] and "loss" in lines[-1]
    assert capfd.readouterr().err == ""
    fitted(classes)
    assert len(page.displays) == 2


def test_a_run_that_fails_leaves_the_display_to_the_next(classes, page):
    def broken():
        yield classes[0][:16], classes[1][:16]
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError):
        fitted(broken)
    fitted(classes)
    assert len(page.displays) in (1, 2) and "epoch" in page.displays[-1][-1]


def test_charts_and_tables(classes):
    run = fitted(classes, progress=False)
    for metric in ("loss", "accuracy"):
        root = xml.etree.ElementTree.fromstring(run.plot(metric)._repr_svg_())
        assert root.tag.endswith("svg") and root.findall(".//{*}path") + root.findall(".//{*}polyline")
    with pytest.raises(KeyError):
        run.plot("precission")
    heads = re.findall(r"<th[^>]*>([^<]*)</th>", run._repr_html_())
    assert heads == list(run.history) and {"epoch", "loss", "val_loss", "val_accuracy"} <= set(heads)
    assert all(isinstance(run.history[name], np.ndarray) and len(run.history[name]) == 3 for name in run.history)
    model = small_model(4)
    shown = pn.explain(pn.compile(model.graph, model.loss, optimizer=pn.optim.sgd(0.1)))
    assert "<table" in shown._repr_html_() and "fc1" in shown._repr_html_()
    assert "fc1.weight" in pn.inspect(model.graph)._repr_html_()


def test_frames(classes):
    pandas = pytest.importorskip("pandas")
    run = fitted(classes, progress=False)
    frame = run.history.frame()
    assert isinstance(frame, pandas.DataFrame) and list(frame.columns) == list(run.history)
    assert frame["loss"].tolist() == run.history["loss"].tolist()
