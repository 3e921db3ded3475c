"""bench_contract beside PyTorch (MKL or oneDNN, whichever it picks), in turns: torch.mm, f32, best of many.

    python bench/contract_peer.py BENCH_CONTRACT [--seconds=0.2] [--rounds=2] [--target=x86-64-v3] [words]     only the cases whose names contain all words

For AVX2 on a processor with AVX-512: MKL_ENABLE_INSTRUCTIONS=AVX2 and ONEDNN_MAX_CPU_ISA=AVX2 in the environment, and --target=x86-64-v3.
"""

import math
import re
import subprocess
import sys
import time

import torch


def best_gflops(name, threads, limit):
    torch.set_num_threads(threads)
    kind, sizes = name.split()
    m, n, k = (int(size) for size in sizes.split("x"))
    a = torch.rand(m, k) if kind[0] == "n" else torch.rand(k, m).t()
    b = torch.rand(k, n) if kind[1] == "n" else torch.rand(n, k).t()
    out = torch.empty(m, n)
    best = float("inf")
    begin = time.perf_counter()
    while time.perf_counter() - begin < limit:
        start = time.perf_counter()
        torch.mm(a, b, out=out)
        best = min(best, time.perf_counter() - start)
    return 2.0 * m * n * k / best / 1e9


def main(arguments):
    bench = arguments[0]
    options = {key: value for key, _, value in (word.partition("=") for word in arguments[1:] if word.startswith("--"))}
    words = [word for word in arguments[1:] if not word.startswith("--")]
    seconds = float(options.get("--seconds", "0.2"))
    target = [f"--target={options['--target']}"] if "--target" in options else []
    names = subprocess.run([bench, "--names"] + words, capture_output=True, text=True, check=True).stdout.splitlines()
    ratios = {1: [], 2: []}
    for name in names:
        ours, theirs = {1: 0.0, 2: 0.0}, {1: 0.0, 2: 0.0}
        for _ in range(int(options.get("--rounds", "2"))):
            line = subprocess.run([bench, f"--seconds={seconds}", name] + target, capture_output=True, text=True, check=True).stdout
            for threads, rate in re.findall(r"(\d) thread: +([\d.]+) GFLOP/s", line):
                ours[int(threads)] = max(ours[int(threads)], float(rate))
            for threads in (1, 2):
                theirs[threads] = max(theirs[threads], best_gflops(name, threads, seconds))
        for threads in (1, 2):
            ratios[threads].append(ours[threads] / theirs[threads])
        print(f"{name:18}" + "".join(
            f" | {t} thread: {ours[t]:6.1f} / {theirs[t]:6.1f} GFLOP/s = {ours[t] / theirs[t]:5.2f}" for t in (1, 2)), flush=True)
    for threads, list_ in ratios.items():
        if list_:
            mean = math.exp(sum(math.log(ratio) for ratio in list_) / len(list_))
            print(f"{threads} thread: geometric mean {mean:.2f}, worst {min(list_):.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
