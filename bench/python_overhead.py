"""What Python costs: the same work by the package and by C++, in turns, the best of all turns of each.

  python bench/python_overhead.py                      # all three; from_torch where torch is installed
  python bench/python_overhead.py loop --turns 10      # loop, fit or module alone
  PYTHONPATH=build/release/python python bench/python_overhead.py

loop    a Python loop over `session.step(x=..., labels=...)` on mlp32, which sets both inputs and reads the loss, beside the step alone and
        the step with inputs and loss in C++ (`pantala bench mlp32`, with and without --data).
fit     an epoch of `Trainer("lenet", 64).fit(..., folder=...)` beside one of `pantala train` over the same files; the seconds are those that
        both write into metrics.jsonl.
module  a step of torchvision's resnet18 by from_torch beside the zoo's, 8 images of 64 x 64: both with all of Winograd's algorithms,
        which is the zoo's default, and both without F(4, 3), which is from_torch's.
"""

import argparse
import json
import struct
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

import pantala as pn
from pantala._torch import ROUNDING_MORE

PROJECT = Path(__file__).resolve().parent.parent
PANTALA = PROJECT / "build" / "release" / "bin" / "pantala"


class Times:
    """The seconds of every step or epoch of each side; a turn runs each side once."""

    def __init__(self):
        self.by_side = {}

    def add(self, side, seconds):
        self.by_side.setdefault(side, []).extend(seconds)

    def best(self, side):
        return min(self.by_side[side])

    def print(self, title, unit, scale):
        print(f"| {title} | best | median |\n|---|---|---|")
        for side, seconds in self.by_side.items():
            print(f"| {side} | {min(seconds) * scale:.1f} {unit} | {np.median(seconds) * scale:.1f} {unit} |")
        print(flush=True)


def timed(step, seconds):
    """The seconds of each step of so many seconds; one step goes before."""
    step()
    taken, end = [], time.perf_counter() + seconds
    while (begin := time.perf_counter()) < end:
        step()
        taken.append(time.perf_counter() - begin)
    return taken


def in_cpp(arguments, seconds):
    command = [str(PANTALA), "bench", *arguments, "--json", "--seconds", str(seconds)]
    figures = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return [figures["ms_min"] / 1000, figures["ms_median"] / 1000]


# --- a loop over steps


def loop(turns, seconds):
    model = pn.zoo.mlp(32)
    options = {"optimizer": pn.optim.adam(1e-3), "non_finite": "watched"}
    session = pn.build_session(model.graph, model.loss, **options)
    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=(32, 784)).astype(np.float32), rng.integers(0, 10, 32)
    times = Times()
    for _ in range(turns):
        times.add("C++, the step alone", in_cpp(["mlp32"], seconds))
        times.add("Python, inputs, step and loss", timed(lambda: session.step(x=x, labels=labels), seconds))
        times.add("C++, inputs, step and loss", in_cpp(["mlp32", "--data"], seconds))
    times.print("mlp32, a step", "us", 1e6)
    more = times.best("Python, inputs, step and loss") - times.best("C++, the step alone")
    print(f"Python above the step alone: {more * 1e6:.1f} us\n")


# --- whole epochs


def write_idx(path, array):
    path.write_bytes(bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}i", *array.shape) + array.tobytes())


def write_images(folder, items=6400):
    rng = np.random.default_rng(0)
    for part, count in (("train", items), ("t10k", 64)):
        write_idx(folder / f"{part}-images-idx3-ubyte", rng.integers(0, 256, (count, 28, 28), dtype=np.uint8))
        write_idx(folder / f"{part}-labels-idx1-ubyte", rng.integers(0, 10, count, dtype=np.uint8))


def epoch_seconds(folder):
    """Without the first epoch, which compiles the last batch's plan and warms up."""
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [line["seconds"] for line in lines if line["kind"] == "epoch"][1:]


def by_command(data, folder, epochs):
    values = [f"data.source=idx:{data}", "data.validation=none", "model.name=lenet", f"epochs={epochs}"]
    options = [part for value in values for part in ("--set", value)]
    subprocess.run([str(PANTALA), "train", *options, "--out", str(folder)], capture_output=True, check=True)
    return epoch_seconds(folder)


def by_fit(data, folder, epochs):
    train = pn.data.read_idx_folder(data).train
    pixels = train.data
    normalize = pn.data.Normalize([float(pixels.mean())], [float(pixels.std())])
    trainer = pn.Trainer("lenet", 64, optimizer=pn.optim.adam(1e-3))
    trainer.fit(train, epochs=epochs, transforms=[normalize], folder=folder, progress=False)
    return epoch_seconds(folder)


def fit(turns, epochs=4):
    times = Times()
    with tempfile.TemporaryDirectory() as made:
        data = Path(made)
        write_images(data)
        for turn in range(turns):
            sides = [("pantala train", by_command), ("Trainer.fit", by_fit)]
            for side, run in sides if turn % 2 else reversed(sides):
                times.add(side, run(data, data / f"{run.__name__}{turn}", epochs))
    times.print("lenet64, an epoch of 100 steps", "ms", 1e3)
    print(f"fit takes {times.best('Trainer.fit') / times.best('pantala train'):.3f} of the command's time\n")


# --- a module of torch


def module(turns, seconds, batch=8, size=64):
    import torch
    import torchvision

    torch.manual_seed(0)
    network, examples, adam = torchvision.models.resnet18(), torch.randn(batch, 3, size, size), pn.optim.adam(1e-3)
    sides = {}
    for title, off in (("all algorithms", []), ("without F(4, 3)", ROUNDING_MORE)):
        sides[f"zoo, {title}"] = pn.Trainer(
            lambda items: pn.zoo.resnet18_training(items, "batch_norm", height=size, width=size), batch, optimizer=adam, rules_off=off)
        sides[f"from_torch, {title}"] = pn.from_torch(network, examples, optimizer=adam, rules_off=off)
    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=(batch, 3, size, size)).astype(np.float32), rng.integers(0, 1000, batch)
    times = Times()
    for _ in range(turns):
        for side, trainer in sides.items():
            times.add(side, timed(lambda: trainer.step(x, labels), seconds))
    times.print("resnet18, a step", "ms", 1e3)
    for title in ("all algorithms", "without F(4, 3)"):
        share = times.best(f"from_torch, {title}") / times.best(f"zoo, {title}")
        print(f"from_torch takes {share:.3f} of the zoo's time, both {title}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", nargs="*", default=["loop", "fit", "module"], help="loop, fit, module")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each side in a turn")
    given = parser.parse_args()
    if "loop" in given.what:
        loop(given.turns, given.seconds)
    if "fit" in given.what:
        fit(given.turns)
    if "module" in given.what:
        module(given.turns, given.seconds)


if __name__ == "__main__":
    main()
