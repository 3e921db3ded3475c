"""The table of bench_attention for PyTorch: scaled_dot_product_attention, f32, two threads, best of many.

Run in turns with bench_attention: machines are shared, and a number means something only beside its peer in the same minute.
    python bench/attention_peer.py
"""

import time

import torch
from torch.nn.functional import scaled_dot_product_attention

# batch, heads, key heads, sequence, head_dim, kind
CASES = [
    (1, 6, 6, 1500, 64, ""),
    (1, 6, 6, 1500, 64, "causal"),
    (1, 6, 6, 1500, 64, "additive"),
    (1, 6, 6, 1500, 64, "boolean"),
    (8, 12, 12, 256, 64, ""),
    (1, 6, 6, 1500, 128, ""),
    (8, 8, 8, 100, 80, "causal"),
    (2, 9, 3, 512, 64, "causal"),
]


def best(call, limit=0.5):
    call()
    least = float("inf")
    begin = time.perf_counter()
    while time.perf_counter() - begin < limit:
        start = time.perf_counter()
        call()
        least = min(least, time.perf_counter() - start)
    return least


def main():
    torch.set_num_threads(2)
    for batch, heads, key_heads, sequence, head_dim, kind in CASES:
        q = torch.randn(batch, heads, sequence, head_dim, requires_grad=True)
        k, v = (torch.randn(batch, key_heads, sequence, head_dim, requires_grad=True) for _ in range(2))
        dout = torch.randn(batch, heads, sequence, head_dim)
        mask = {"additive": torch.zeros(sequence, sequence), "boolean": torch.ones(sequence, sequence, dtype=torch.bool)}.get(kind)
        options = {"attn_mask": mask, "is_causal": kind == "causal", "enable_gqa": heads != key_heads}
        with torch.no_grad():
            forward = best(lambda: scaled_dot_product_attention(q, k, v, **options))
        out = scaled_dot_product_attention(q, k, v, **options)
        backward = best(lambda: torch.autograd.grad(out, (q, k, v), dout, retain_graph=True))
        gflop = 4e-9 * batch * heads * sequence * sequence * head_dim * (0.5 if kind == "causal" else 1)
        print(
            f"{batch}x{heads}/{key_heads}x{sequence}x{head_dim} {kind:9} forward {1e3 * forward:6.2f} ms {gflop / forward:4.0f} GFLOP/s, "
            f"backward {1e3 * backward:6.2f} ms {2.5 * gflop / backward:4.0f} GFLOP/s",
            flush=True,
        )


if __name__ == "__main__":
    main()
