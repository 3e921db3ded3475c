"""What PyTorch's exporter would lose of a module without a word: gradients that are cut off, buffers that
change, branches by the batch size, rows of padding. It is trained as PyTorch does it, or refused."""

import copy
import inspect

import pytest

import pantala as pn

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")

from torch import nn  # noqa: E402

from torch_side import worst  # noqa: E402

F = nn.functional
DECAYED = (pn.optim.adamw(0.01, weight_decay=0.1), lambda p: torch.optim.AdamW(p, 0.01, weight_decay=0.1))
PLAIN = (pn.optim.sgd(0.05), lambda p: torch.optim.SGD(p, 0.05))


class Made(nn.Module):
    """Two layers, put together by a function."""

    def __init__(self, forward):
        super().__init__()
        self.a, self.b, self.made = nn.Linear(6, 6), nn.Linear(6, 3), forward

    def forward(self, x):
        return self.made(self, x)


def items(count=5, batch=4, x=lambda batch: torch.randn(batch, 6)):
    torch.manual_seed(1)
    return [(x(batch), torch.randint(0, 3, (batch,))) for _ in range(count)]


def agrees(module, batches, optimizers=PLAIN, first=lambda out: out, bound=1e-5):
    module.train()
    ours = pn.from_torch(module, batches[0][0], optimizer=optimizers[0])
    theirs = copy.deepcopy(module)
    optimizer = optimizers[1](theirs.parameters())
    for x, labels in batches:
        optimizer.zero_grad()
        loss = F.cross_entropy(first(theirs(x)), labels)
        assert ours.step(x, labels) == pytest.approx(loss.item(), rel=1e-5)
        loss.backward()
        optimizer.step()
    assert worst(ours.state_dict(), theirs.state_dict()) < bound
    return ours


def under_no_grad(m, x):
    with torch.no_grad():
        target = torch.tanh(m.a(x)).add_(1)
    return m.b(x + target)


@torch.no_grad()
def target_of(m, x):
    return m.a(x) * 2


CUT = {
    "detach": lambda m, x: m.b(x + m.a(x).detach()),
    "detach of a part": lambda m, x: m.b(m.a(x) * torch.sigmoid(m.a(x)).detach()),
    "straight through": lambda m, x: m.b(m.a(x) + (torch.round(m.a(x)) - m.a(x)).detach()),
    "no_grad": under_no_grad,
    "no_grad around a function": lambda m, x: m.b(x + target_of(m, x)),
}


@pytest.mark.parametrize("optimizers", [PLAIN, DECAYED], ids=["sgd", "adamw"])
@pytest.mark.parametrize("how", CUT)
def test_gradients_that_are_cut_off(how, optimizers):
    torch.manual_seed(0)
    agrees(Made(CUT[how]), items(), optimizers)


def test_a_head_that_the_loss_does_not_read_is_not_decayed():
    torch.manual_seed(0)
    agrees(Made(lambda m, x: (m.b(x), m.a(x))), items(), DECAYED, first=lambda out: out[0])


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_are_computed_as_they_stand(reentrant):
    from torch.utils.checkpoint import checkpoint

    torch.manual_seed(0)
    inputs = items(x=lambda batch: torch.randn(batch, 6, requires_grad=True))
    agrees(Made(lambda m, x: m.b(checkpoint(m.a, x, use_reentrant=reentrant))), inputs)


def test_the_row_of_padding_is_not_trained():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Embedding(20, 6, padding_idx=2), nn.Flatten(), nn.Linear(30, 3))
    ours = agrees(module, items(x=lambda batch: torch.randint(0, 4, (batch, 5))))
    assert torch.equal(ours.state_dict()["0.weight"][2], module[0].weight[2])


def test_batch_norms_in_double_precision():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Linear(6, 3)).double()
    # ONNX's attributes are f32, the momentum 0.1 among them.
    agrees(module, items(x=lambda batch: torch.randn(batch, 6, dtype=torch.float64)), bound=1e-6)


# --- branches by the batch size


def even(m, x):
    return m.b(x) * (2 if x.shape[0] % 2 == 0 else 1)


BY_SIZE = {
    "more than": lambda m, x: m.b(x) * (2 if x.shape[0] > 4 else 1),
    "at least": lambda m, x: m.b(x) * (2 if x.shape[0] >= 4 else 1),
    "even": even,
    "not": lambda m, x: m.b(x) * (2 if x.shape[0] != 7 else 1),
    "as a number": lambda m, x: m.b(x) * float(x.shape[0]),
    "as a whole number": lambda m, x: m.b(x) * int(x.shape[0]),
    "item by item": lambda m, x: torch.stack([m.b(x)[k] for k in range(len(x))]),
    "in the computation": lambda m, x: m.b(x) - m.b(x).sum(0) / x.shape[0],
}


@pytest.mark.parametrize("how", BY_SIZE)
def test_modules_that_look_at_the_batch_size(how):
    torch.manual_seed(0)
    module = Made(BY_SIZE[how]).train()
    trainer = pn.from_torch(module, torch.randn(4, 6), optimizer=pn.optim.sgd(0.0))
    for batch in (4, 8, 3, 7):
        x, labels = items(1, batch)[0]
        assert trainer.step(x, labels) == pytest.approx(F.cross_entropy(module(x), labels).item(), rel=1e-5)


# --- what is refused


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 3)
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x):
        self.calls += 1
        return self.a(x) * self.calls


class Sign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.sign(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Signs(nn.Module):
    def forward(self, x):
        return Sign.apply(x)


def line_of(kind, text):
    lines, first = inspect.getsourcelines(kind)
    return f"test_torch_lost.py:{first + next(k for k, line in enumerate(lines) if text in line)}"


def refused(module, x=torch.ones(4, 6)):
    with pytest.raises(pn.UnsupportedError) as caught:
        pn.from_torch(module, x)
    return str(caught.value).split("\n")[1:]


def test_buffers_that_change_are_listed():
    module = nn.Sequential(nn.Linear(6, 6), Counts())
    lines = refused(module)
    assert len(lines) == 1 and "1.calls" in lines[0] and line_of(Counts, "self.calls += 1") in lines[0], lines
    assert module[1].calls == 0, "the module stays as it is"
    (mean, variance, *_) = refused(nn.InstanceNorm1d(5, track_running_stats=True), torch.randn(4, 5, 6))
    assert "running_mean" in mean and "running_var" in variance


def test_gradients_of_the_modules_own_are_listed():
    module = nn.Sequential(nn.Linear(6, 6), Signs(), nn.Linear(6, 6), Counts())
    module[0].weight.register_hook(lambda gradient: gradient * 2)
    module[2].register_full_backward_hook(lambda *_: None)
    lines = refused(module)
    assert len(lines) == 4, lines
    assert "0.weight: there is a hook" in lines[0] and "2: there is a hook" in lines[1]
    assert "Sign: a function with a gradient of its own" in lines[2]
    assert f"1 ({line_of(Sign, 'class Sign')})" in lines[2] and "3.calls" in lines[3]


def test_hooks_that_forward_sets_are_listed():
    def hooked(m, x):
        y = m.b(x)
        if y.requires_grad:
            y.register_hook(lambda gradient: gradient * 2)
        return y

    (line,) = refused(Made(hooked))
    assert line_of(hooked, "register_hook") in line


def test_gradients_that_are_scaled_by_frequency():
    module = nn.Sequential(nn.Embedding(9, 6, scale_grad_by_freq=True), nn.Flatten(), nn.Linear(30, 3))
    (line,) = refused(module, torch.randint(0, 9, (4, 5)))
    assert "frequency" in line and "[0 " in line


@pytest.mark.parametrize("call", [
    lambda: pn.from_torch(nn.Linear(6, 3), None),
    lambda: pn.from_torch(nn.Linear(6, 3), "abc"),
    lambda: pn.from_torch(nn.Linear(6, 3), {"y": torch.randn(4, 6)}),
    lambda: pn.from_torch(nn.Linear(6, 3), torch.randn(4, 6, device="meta")),
    lambda: pn.from_torch(nn.DataParallel(nn.Linear(6, 3)), torch.randn(4, 6)),
    lambda: pn.from_torch(nn.Linear(6, 3), torch.randn(4, 6), loss=nn.CrossEntropyLoss()),
    lambda: pn.from_torch(nn.Linear(6, 3), torch.randn(4, 6), loss=F.cross_entropy),
    lambda: pn.from_torch(nn.Linear(6, 3), torch.randn(4, 6), optimizer="adam"),
    lambda: pn.from_torch(Made(lambda m, x: None), torch.randn(4, 6)),
])
def test_mistakes_are_errors_of_ours_at_the_users_line(call):
    with pytest.raises(pn.TypeError) as caught:
        call()
    assert caught.value.place == f"test_torch_lost.py:{call.__code__.co_firstlineno}"


def test_tensors_without_memory_are_refused():
    trainer = pn.from_torch(nn.Linear(6, 3), torch.randn(4, 6))
    labels = torch.zeros(4, dtype=torch.int64)
    for x in (torch._efficientzerotensor((4, 6)), torch.randn(4, 6, device="meta"), torch.randn(4, 6).to_sparse()):
        with pytest.raises(pn.TypeError):
            trainer.step(x, labels)
