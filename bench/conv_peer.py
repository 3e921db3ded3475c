"""bench_conv beside PyTorch (oneDNN), in turns: conv2d and its backward functions, f32, the better of channels last and not.

    python bench/conv_peer.py BENCH_CONV [--seconds=0.2] [--rounds=2] [--target=x86-64-v3] [words]     only the cases whose names contain all words

For AVX2 on a processor with AVX-512: ONEDNN_MAX_CPU_ISA=AVX2 in the environment, and --target=x86-64-v3.
"""

import re
import subprocess
import sys
import time

import torch


def best_seconds(run, limit):
    best = float("inf")
    begin = time.perf_counter()
    while time.perf_counter() - begin < limit:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def peer_runs(name):
    """The functions that compute this case, one for each layout, and its flops."""
    shape, out, kernel, stride, groups, direction = re.match(
        r"\S+ ([\dx]+)->(\d+) ([\dx]+)(?:/(\d+))?(?: groups (\d+))? (\w+)$", name).groups()
    x_shape = [int(size) for size in shape.split("x")]
    kernel = [int(size) for size in kernel.split("x")]
    stride, groups = int(stride or 1), int(groups or 1)
    spatial = len(kernel)
    padding = kernel[0] // 2
    runs = []
    for like in (torch.channels_last, torch.contiguous_format) if spatial == 2 else (torch.contiguous_format,):
        x = torch.rand(x_shape).to(memory_format=like)
        w = torch.rand([int(out), x_shape[1] // groups] + kernel).to(memory_format=like)
        convolve = torch.nn.functional.conv2d if spatial == 2 else torch.nn.functional.conv1d
        y = convolve(x, w, None, stride, padding, 1, groups)
        dy = torch.rand_like(y).to(memory_format=like)
        flops = 2.0 * y.numel() * w[0].numel()

        def forward(x=x, w=w, convolve=convolve):
            return convolve(x, w, None, stride, padding, 1, groups)

        def backward(x=x, w=w, dy=dy):
            return torch.ops.aten.convolution_backward(
                dy, x, w, None, [stride] * spatial, [padding] * spatial, [1] * spatial, False, [0] * spatial, groups,
                [direction == "input_grad", direction == "weight_grad", False])

        runs.append(forward if direction == "forward" else backward)
    return runs, flops


def main(arguments):
    bench = arguments[0]
    options = {key: value for key, _, value in (word.partition("=") for word in arguments[1:] if word.startswith("--"))}
    words = [word for word in arguments[1:] if not word.startswith("--")]
    seconds = float(options.get("--seconds", "0.2"))
    target = [f"--target={options['--target']}"] if "--target" in options else []
    names = subprocess.run([bench, "--names"] + words, capture_output=True, text=True, check=True).stdout.splitlines()
    for name in names:
        ours, theirs = {1: 0.0, 2: 0.0}, {1: 0.0, 2: 0.0}
        runs, flops = peer_runs(name)
        for _ in range(int(options.get("--rounds", "2"))):
            line = subprocess.run([bench, f"--seconds={seconds}", name] + target, capture_output=True, text=True, check=True).stdout
            for threads, rate in re.findall(r"(\d) thread: +[\d.]+ ms +([\d.]+) GFLOP/s", line):
                ours[int(threads)] = max(ours[int(threads)], float(rate))
            for threads in (1, 2):
                torch.set_num_threads(threads)
                with torch.no_grad():
                    for run in runs:
                        theirs[threads] = max(theirs[threads], flops / best_seconds(run, seconds / len(runs)) / 1e9)
        print(f"{name:42}" + "".join(
            f" | {t} thread: {ours[t]:6.1f} / {theirs[t]:6.1f} GFLOP/s = {ours[t] / theirs[t]:5.2f}" for t in (1, 2)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
