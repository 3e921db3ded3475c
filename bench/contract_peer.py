"""The table of bench_contract for PyTorch (MKL or oneDNN, whichever it picks): torch.mm, f32, best of many.

Run in turns with bench_contract: machines are shared, and a number means something only beside its peer in the same minute.
    python bench/contract_peer.py [words]     only the cases whose names contain all words
"""

import sys
import time

import torch

SIZES = [(32, 128, 784), (128, 576, 576), (128, 1536, 576), (784, 128, 32), (512, 512, 512), (1024, 1024, 1024)]


def best_gflops(kind, m, n, k, threads):
    torch.set_num_threads(threads)
    a = torch.rand(m, k) if kind[0] == "n" else torch.rand(k, m).t()
    b = torch.rand(k, n) if kind[1] == "n" else torch.rand(n, k).t()
    out = torch.empty(m, n)
    best = float("inf")
    limit = 0.15 if m * n * k < 2**27 else 0.8
    begin = time.perf_counter()
    while time.perf_counter() - begin < limit:
        start = time.perf_counter()
        torch.mm(a, b, out=out)
        best = min(best, time.perf_counter() - start)
    return 2.0 * m * n * k / best / 1e9


def main(words):
    for m, n, k in SIZES:
        for kind in ("nt", "nn", "tn"):
            name = f"{kind} {m}x{n}x{k}"
            if not all(word in name for word in words):
                continue
            line = f"{name:16}"
            for threads in (1, 2):
                line += f" | {threads} thread: {best_gflops(kind, m, n, k, threads):6.1f} GFLOP/s"
            print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
