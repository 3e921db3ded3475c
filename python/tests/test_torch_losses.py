"""Losses by name are those that PyTorch has under these names, with its defaults: values and what is
learnt from them."""

import pytest

import pantala as pn

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")

from torch import nn  # noqa: E402

from pantala._torch_loss import LOSSES  # noqa: E402
from torch_side import compare  # noqa: E402

F = nn.functional
ADAM = dict(optimizer=pn.optim.adam(1e-2), make_optimizer=lambda p: torch.optim.Adam(p, 1e-2))


def classes():
    return torch.randint(0, 4, (8,))


def numbers():
    return 2 * torch.randn(8, 4)


def shares():
    made = torch.softmax(torch.randn(8, 4), 1)
    made[0] = torch.tensor([0.0, 1.0, 0.0, 0.0])
    return made


def bits():
    return torch.randint(0, 2, (8, 4)).float()


# The last layer, PyTorch's function, labels.
CASES = {
    "cross_entropy": (nn.Identity(), F.cross_entropy, classes),
    "nll": (nn.LogSoftmax(1), F.nll_loss, classes),
    "mse": (nn.Identity(), F.mse_loss, numbers),
    "rmse": (nn.Identity(), lambda out, y: torch.sqrt(F.mse_loss(out, y)), numbers),
    "l1": (nn.Identity(), F.l1_loss, numbers),
    "huber": (nn.Identity(), F.huber_loss, numbers),
    "smooth_l1": (nn.Identity(), F.smooth_l1_loss, numbers),
    "bce": (nn.Sigmoid(), F.binary_cross_entropy, bits),
    "bce_with_logits": (nn.Identity(), F.binary_cross_entropy_with_logits, bits),
    "kl_div": (nn.LogSoftmax(1), F.kl_div, shares),
    "kl_div_with_logits": (
        nn.Identity(), lambda out, y: F.kl_div(F.log_softmax(out, 1), y, reduction="batchmean"), shares),
}


def test_every_name_has_a_case():
    assert set(CASES) == set(LOSSES)


@pytest.mark.filterwarnings("ignore:reduction")  # of kl_div: what its default is called
@pytest.mark.parametrize("name", CASES)
def test_a_loss_by_name(name):
    last, function, labels = CASES[name]
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 4), last)
    batches = [({"input": torch.randn(8, 6)}, labels()) for _ in range(5)]
    compare(module, batches, loss=name, torch_loss=function, **ADAM)


def test_probabilities_as_labels():
    torch.manual_seed(0)
    module = nn.Linear(6, 4)
    batches = [({"input": torch.randn(8, 6)}, shares()) for _ in range(5)]
    compare(module, batches, loss="cross_entropy", torch_loss=F.cross_entropy, labels=batches[0][1], **ADAM)


def test_ignored_labels():
    torch.manual_seed(0)
    module = nn.Linear(6, 4)
    batches = [({"input": torch.randn(8, 6)}, classes().index_fill(0, torch.tensor([1, 4]), -100))
               for _ in range(5)]
    compare(module, batches, loss="cross_entropy", torch_loss=F.cross_entropy, **ADAM)
