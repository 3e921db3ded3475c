"""Training and evaluation mode of a module's parts, as PyTorch has them."""

import copy

import numpy as np
import pytest

import pantala as pn

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")

from torch import nn  # noqa: E402

from torch_side import images, worst  # noqa: E402

SGD = dict(optimizer=pn.optim.sgd(0.01, momentum=0.9),
           make_optimizer=lambda p: torch.optim.SGD(p, 0.01, momentum=0.9))


class Norms(nn.Module):
    """Two batch norms and dropout, of which some may be in eval()."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3)
        self.first, self.second = nn.BatchNorm2d(6), nn.BatchNorm2d(6)
        self.drop = nn.Dropout(0.5)
        self.fc = nn.Linear(6, 10)
        with torch.no_grad():
            self.first.running_mean.uniform_(-1, 1)
            self.first.running_var.uniform_(0.5, 2)

    def forward(self, x):
        return self.fc(self.drop(self.second(torch.relu(self.first(self.conv(x))))).mean((2, 3)))


def state_after(module, batches, options=SGD, **more):
    trainer = pn.from_torch(module, batches[0][0], optimizer=options["optimizer"], **more)
    for batch, labels in batches:
        trainer.step(*batch.values(), labels)
    return trainer.state_dict()


def both_states(module, batches):
    torch.manual_seed(0)
    return state_after(module, batches), in_torch(module, batches)


def in_torch(module, batches):
    """The state after training, in the modes that the parts have now."""
    module = copy.deepcopy(module)
    optimizer = SGD["make_optimizer"]([p for p in module.parameters() if p.requires_grad])
    for batch, labels in batches:
        optimizer.zero_grad()
        nn.functional.cross_entropy(module(**batch), labels).backward()
        optimizer.step()
    return module.state_dict()


def agree(module, batches, bound=2e-4):
    ours, theirs = both_states(module, batches)
    assert worst(ours, theirs) < bound
    for name, value in theirs.items():
        if not value.is_floating_point():
            assert torch.equal(ours[name], value), name
    return ours


def test_a_norm_and_dropout_in_eval_stay_so_while_the_rest_trains():
    torch.manual_seed(0)
    module = Norms().train()
    module.first.eval()
    module.drop.eval()
    ours = agree(module, images(12))
    assert torch.equal(ours["first.running_mean"], module.first.running_mean)
    assert int(ours["first.num_batches_tracked"]) == 0
    assert int(ours["second.num_batches_tracked"]) == 5
    assert not torch.equal(ours["first.weight"], module.first.weight)


def test_a_module_in_eval_trains_all_its_parts():
    torch.manual_seed(0)
    module = Norms().eval()
    module.drop.p = 0.0
    trainer = pn.from_torch(module, images(12)[0][0], optimizer=SGD["optimizer"])
    for batch, labels in images(12):
        trainer.step(batch["x"], labels)
    assert worst(trainer.state_dict(), in_torch(module.train(), images(12))) < 2e-4


def test_norms_of_frozen_parameters_follow_their_batches():
    torch.manual_seed(0)
    module = Norms().train()
    module.drop.p = 0.0
    module.first.requires_grad_(False)
    ours = agree(module, images(12))
    assert not torch.equal(ours["first.running_mean"], module.first.running_mean)
    assert torch.equal(ours["first.weight"], module.first.weight)
    kept = state_after(module, images(12), kept_statistics="of_frozen")
    assert torch.equal(kept["first.running_mean"], module.first.running_mean)
    assert int(kept["first.num_batches_tracked"]) == 0


def test_batches_are_counted_once():
    torch.manual_seed(0)
    module = Norms()
    batches = images(12)
    trainer = pn.from_torch(module, batches[0][0], optimizer=pn.optim.sgd(0.01))
    for batch, labels in batches[:3]:
        trainer.step(batch["x"], labels)
    trainer.write_back()
    assert int(module.first.num_batches_tracked) == 3
    assert int(trainer.state_dict()["first.num_batches_tracked"]) == 3
    trainer.step(batches[3][0]["x"], batches[3][1])
    assert int(trainer.state_dict()["first.num_batches_tracked"]) == 4
    trainer.write_back()
    trainer.read_module()
    assert int(trainer.state_dict()["first.num_batches_tracked"]) == 4
    again = pn.from_torch(module, batches[0][0], optimizer=pn.optim.sgd(0.01))
    again.step(batches[0][0]["x"], batches[0][1])
    assert int(again.state_dict()["first.num_batches_tracked"]) == 5


def test_micro_batches_are_counted():
    torch.manual_seed(0)
    batches = images(12, count=4)
    trainer = pn.from_torch(Norms(), batches[0][0], accumulation_steps=2)
    for batch, labels in batches:
        trainer.step(batch["x"], labels)
    assert int(trainer.state_dict()["second.num_batches_tracked"]) == 4


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.fc = nn.BatchNorm1d(6), nn.Linear(6, 3)

    def forward(self, x):
        return self.fc(torch.tanh(self.norm(torch.tanh(self.norm(x)))))


def test_a_norm_that_is_used_twice():
    torch.manual_seed(0)
    agree(Twice(), [({"x": torch.randn(8, 6)}, torch.randint(0, 3, (8,))) for _ in range(5)])


class Depth(nn.Module):
    """Branches that training passes over at random and scales, evaluation always takes: no dropout
    that an importer could switch off."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.fc = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 3)
        self.register_buffer("table", torch.linspace(0, 1, 6), persistent=False)

    def forward(self, x):
        branch = self.a(x) * self.table
        if self.training:
            keep = (torch.rand(x.shape[0], 1) < 0.5).float()
            return self.fc(x + branch * keep / 0.5)
        return self.fc(x + branch + 0.1 * self.b(x) + torch.tensor([1.0, 2, 3, 4, 5, 6]))


def test_evaluation_is_that_of_eval():
    torch.manual_seed(0)
    module = Depth().train()
    trainer = pn.from_torch(module, torch.randn(8, 6), optimizer=pn.optim.sgd(0.1))
    x, y = torch.randn(20, 6), torch.randint(0, 3, (20,))
    for k in range(3):
        trainer.step(x[:8], y[:8])
    trainer.write_back()
    assert module.training
    with torch.no_grad():
        expected = module.eval()(x)
    np.testing.assert_allclose(trainer.predict(x), expected.numpy(), rtol=1e-4, atol=1e-5)
    loss = nn.functional.cross_entropy(expected, y).item()
    assert trainer.evaluate((x, y)).loss == pytest.approx(loss, rel=1e-4)
    run = trainer.fit((x, y), epochs=1, validation=(x, y), progress=False)
    trainer.write_back()
    with torch.no_grad():
        loss = nn.functional.cross_entropy(module(x), y).item()
    assert run.history["val_loss"][-1] == pytest.approx(loss, rel=1e-4)


def test_stochastic_depth_of_torchvision():
    torchvision = pytest.importorskip("torchvision")
    torch.manual_seed(0)
    module = nn.Sequential(
        nn.Conv2d(3, 4, 3), torchvision.ops.StochasticDepth(0.7, "row"), nn.Flatten(1), nn.Linear(144, 10))
    x = torch.randn(6, 3, 8, 8)
    trainer = pn.from_torch(module, x)
    with torch.no_grad():
        expected = module.eval()(x)
    np.testing.assert_allclose(trainer.predict(x), expected.numpy(), rtol=1e-4, atol=1e-5)
