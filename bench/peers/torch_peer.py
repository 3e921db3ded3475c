"""PyTorch, eager, as a peer of compare.py: the workloads of bench/compare.py in f32 on the CPU.

A training step is forward, backward, optimizer; inference is the forward pass to the loss. A workload is a function that
returns (model, loss function, optimizer) over data already in memory; add it to WORKLOADS under the name that `pantala bench`
knows. Spoken to by lines of JSON: see protocol.py.
"""

import os

import protocol

# OpenMP's threads spin while they wait. Unbound, on a busy machine, both end up on the one idle core and spin against each other
# for whole time slices (40 ms instead of 0.4); bound to a core each, they are as fast as on a quiet machine.
os.environ.setdefault("OMP_PROC_BIND", "true")

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402


def mlp(batch):
    model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
    x = torch.randn(batch, 784)
    probabilities = F.one_hot(torch.randint(0, 10, (batch,)), 10).float()
    return model, lambda: F.cross_entropy(model(x), probabilities), torch.optim.SGD(model.parameters(), 0.01)


def mlp_wide(batch):
    model = nn.Sequential(
        nn.Linear(784, 1024), nn.GELU(), nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 10)
    )
    x, labels = torch.randn(batch, 784), torch.randint(0, 10, (batch,))
    return model, lambda: F.cross_entropy(model(x), labels), torch.optim.Adam(model.parameters(), 1e-3, fused=True)


def lenet(batch):
    model = nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64 * 7 * 7, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip
    x, labels = torch.randn(batch, 1, 28, 28), torch.randint(0, 10, (batch,))
    return model, lambda: F.cross_entropy(model(x), labels), torch.optim.Adam(model.parameters(), 1e-3, fused=True)


WORKLOADS = {
    "mlp32": lambda: mlp(32),
    "mlp128": lambda: mlp(128),
    "mlp_wide128": lambda: mlp_wide(128),
    "lenet64": lambda: lenet(64),
}


def prepare(name, infer):
    def start():
        torch.manual_seed(protocol.SEED)
        model, loss_of, optimizer = WORKLOADS[name]()

        def train_step():
            loss = loss_of()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            return loss.detach()

        def infer_step():
            with torch.inference_mode():
                return loss_of()

        model.train(not infer)
        return infer_step if infer else train_step

    return start


def main():
    threads = protocol.parse_threads(__doc__.splitlines()[0])
    answers = protocol.claim_stdout()
    torch.set_num_threads(threads)
    protocol.serve(answers, "torch", torch.__version__, WORKLOADS, threads, prepare)


if __name__ == "__main__":
    main()
