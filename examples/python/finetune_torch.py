"""Fine-tunes a module of PyTorch: the head of torchvision's ResNet-18 is replaced, its first layers stay
as they are, and the rest is trained here and written back. With --quick the weights are random and the
images few, so that nothing is downloaded."""

import sys

import torch
import torchvision
from torch.utils.data import DataLoader, TensorDataset

import pantala as pn

quick = "--quick" in sys.argv
weights = None if quick else torchvision.models.ResNet18_Weights.IMAGENET1K_V1
module = torchvision.models.resnet18(weights=weights)
module.fc = torch.nn.Linear(module.fc.in_features, 10)
for parameter in module.layer1.parameters():
    parameter.requires_grad_(False)

size, count = (32, 64) if quick else (96, 2048)
images, labels = torch.randn(count, 3, size, size), torch.randint(0, 10, (count,))
data = DataLoader(TensorDataset(images, labels), 16, shuffle=True)

trainer = pn.from_torch(module, images[:16], loss="cross_entropy", optimizer=pn.optim.adamw(1e-3))
run = trainer.fit(data, epochs=2)
print(f"loss {run.history['loss'][0]:.3f}, then {run.history['loss'][-1]:.3f}")
trainer.write_back()
torch.save(module.state_dict(), "finetuned.pt")
