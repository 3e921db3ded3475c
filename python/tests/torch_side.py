"""The same training by PyTorch, and how near ours must be to it."""

import copy

import numpy as np
import torch

import pantala as pn


def trained_by_torch(module, batches, loss, make_optimizer, steps=5, dtype=torch.float32):
    module = copy.deepcopy(module).to(dtype).train()
    optimizer = make_optimizer(module.parameters())
    losses = []
    for inputs, labels in batches[:steps]:
        optimizer.zero_grad()
        converted = {k: v.to(dtype) if v.is_floating_point() else v for k, v in inputs.items()}
        out = module(**converted)
        out = out.logits if hasattr(out, "logits") else out
        value = loss(out, labels.to(dtype) if labels.is_floating_point() else labels)
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses, module.state_dict()


def worst(a, b):
    """The largest difference of two states, against the largest number of each tensor."""
    found = 0.0
    for name, value in a.items():
        if value.is_floating_point():
            expected = b[name].double()
            scale = max(float(expected.abs().max()), 1e-2) if expected.numel() else 1.0
            difference = (value.double() - expected).abs().max() if expected.numel() else 0.0
            found = max(found, float(difference) / scale)
    return found


def compare(module, batches, *, loss, torch_loss, optimizer, make_optimizer, labels=None, noise=0, **options):
    """Losses and states within 1e-4 of PyTorch's; of batch norms over few numbers, which amplify any rounding, within
    `noise` times what PyTorch in f32 is away from f64, where that is more."""
    inputs = {k: v for k, v in batches[0][0].items()}
    trainer = pn.from_torch(module, inputs, loss=loss, optimizer=optimizer, example_labels=labels, **options)
    losses = [trainer.step(*batch.values(), target) for batch, target in batches[:5]]
    expected, state = trained_by_torch(module, batches, torch_loss, make_optimizer)
    truth, exact = trained_by_torch(module, batches, torch_loss, make_optimizer, dtype=torch.float64)
    bound = 1e-4
    if noise:
        bound = max(bound, noise * max(abs(a - b) / abs(b) for a, b in zip(expected, truth)))
    np.testing.assert_allclose(losses, truth if noise else expected, rtol=bound)
    got = trainer.state_dict()
    assert set(got) == set(module.state_dict())
    assert worst(got, exact if noise else state) <= max(1e-4, noise * worst(state, exact))
    return trainer


def images(size, count=5, batch=4, classes=10, channels=3):
    torch.manual_seed(1)
    return [({"x": torch.randn(batch, channels, size, size)}, torch.randint(0, classes, (batch,)))
            for _ in range(count)]
