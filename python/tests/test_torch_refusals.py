"""What cannot be taken of a module is listed completely, with submodules and lines."""

import inspect

import pytest

import pantala as pn

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")

from torch import nn  # noqa: E402


class Writes(nn.Module):
    """What the exporter cannot write, and what cannot be read, one behind the other."""

    def forward(self, x):
        a = torch.kthvalue(x, 2)[0].reshape(-1, 1) + x
        b = torch.linalg.det(a.reshape(-1, 2, 2)).reshape(-1, 1)
        return torch.special.i0(b) + x


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, x):
        return x * self.scale


class Branches(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x
        return -x


def line_of(kind, text):
    lines, first = inspect.getsourcelines(kind)
    return f"test_torch_refusals.py:{first + next(k for k, line in enumerate(lines) if text in line)}"


def refused(module, *inputs):
    with pytest.raises(pn.UnsupportedError) as caught:
        pn.from_torch(module, inputs)
    return str(caught.value).split("\n")


def line_with(lines, text):
    (line,) = [line for line in lines if text in line]
    return line


def test_everything_is_listed_with_its_place():
    module = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.ReLU(), Writes()), Scaled())
    lines = refused(module, torch.randn(4, 4))
    assert "(4 reasons)" in lines[0] and len(lines) == 5, lines
    for operator, code in (("kthvalue", "kthvalue"), ("Det", "linalg.det"), ("i0", "special.i0")):
        line = line_with(lines, operator)
        assert line.endswith(f"[1.1 ({line_of(Writes, code)})]"), line
    assert line_with(lines, "single number").strip().startswith("2.scale")


def test_what_the_evaluation_alone_has_is_listed_when_it_is_wanted():
    class Evaluates(nn.Linear):
        def forward(self, x):
            y = super().forward(x)
            return y if self.training else torch.special.i0(y)

    trainer = pn.from_torch(Evaluates(4, 4).train(), torch.randn(4, 4))
    with pytest.raises(pn.UnsupportedError, match="i0"):
        trainer.fit((torch.randn(8, 4), torch.zeros(8, dtype=torch.int64)), progress=False,
                    validation=(torch.randn(8, 4), torch.zeros(8, dtype=torch.int64)))
    assert trainer.trainer.state["global_steps"] == 0


def test_what_stops_the_exporter_has_its_place():
    lines = refused(nn.Sequential(nn.Linear(4, 4), Branches()), torch.randn(4, 4))
    assert "data-dependent" in lines[1] and lines[1].endswith(f"[1 ({line_of(Branches, 'if x.sum()')})]"), lines


def test_single_numbers_alone():
    lines = refused(nn.Sequential(nn.Linear(4, 4), Scaled()), torch.randn(4, 4))
    assert lines[1:] == ["  1.scale: a single number is not trained; give it the shape [1]"]
