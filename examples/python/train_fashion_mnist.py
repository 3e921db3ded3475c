"""LeNet on Fashion-MNIST: python train_fashion_mnist.py (--quick for a few steps only)."""

import sys

import pantala as pn

train, test = pn.data.fashion_mnist()
trainer = pn.Trainer("lenet", 64, optimizer=pn.optim.adam(1e-3))
run = trainer.fit(train, epochs=3, validation=test, transforms=[pn.data.Scale()],
                  max_steps=20 if "--quick" in sys.argv else 0)
print(f"accuracy {run.history['val_accuracy'][-1]:.3f}, loss {run.history['val_loss'][-1]:.3f}")
trainer.save_model("lenet.safetensors")
