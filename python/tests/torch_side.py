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


def compare(module, batches, *, loss, torch_loss, optimizer, make_optimizer, labels=None, norms=False):
    inputs = {k: v for k, v in batches[0][0].items()}
    # Batch norms over few numbers amplify roundings: with the sums of Winograd's algorithms those are others.
    numerics = "strict" if norms else "relaxed"
    trainer = pn.from_torch(module, inputs, loss=loss, optimizer=optimizer, example_labels=labels, numerics=numerics)
    losses = [trainer.step(*batch.values(), target) for batch, target in batches[:5]]
    expected, state = trained_by_torch(module, batches, torch_loss, make_optimizer)
    truth, exact = trained_by_torch(module, batches, torch_loss, make_optimizer, dtype=torch.float64)
    bound = 1e-4
    if norms:  # within twice what f32 itself is away from f64, since both are one draw of the same noise
        bound = max(bound, 2 * max(abs(a - b) / abs(b) for a, b in zip(expected, truth)))
    np.testing.assert_allclose(losses, truth if norms else expected, rtol=bound)
    got = trainer.state_dict()
    assert set(got) == set(module.state_dict())
    limit = max(1e-4, 2 * worst(state, exact)) if norms else 1e-4
    assert worst(got, exact if norms else state) <= limit
    return trainer


def images(size, count=5, batch=4, classes=10, channels=3):
    torch.manual_seed(1)
    return [({"x": torch.randn(batch, channels, size, size)}, torch.randint(0, classes, (batch,)))
            for _ in range(count)]
