"""The table of bench_conv for PyTorch (oneDNN): conv2d and its backward functions, f32, channels last, best of many.

Run in turns with bench_conv: machines are shared, and a number means something only beside its peer in the same minute.
    python bench/conv_peer.py [--row-major] [words]     only the cases whose names contain all words
"""

import sys
import time

import torch

LAYERS = [
    ("lenet1 64x1x28x28->32 3x3", (64, 1, 28, 28), (32, 1, 3, 3), 1, 1, 1),
    ("lenet2 64x32x14x14->64 3x3", (64, 32, 14, 14), (64, 32, 3, 3), 1, 1, 1),
    ("stem 8x3x224x224->64 7x7/2", (8, 3, 224, 224), (64, 3, 7, 7), 2, 3, 1),
    ("res 8x64x56x56->64 3x3", (8, 64, 56, 56), (64, 64, 3, 3), 1, 1, 1),
    ("down 8x64x56x56->128 3x3/2", (8, 64, 56, 56), (128, 64, 3, 3), 2, 1, 1),
    ("deep 8x512x7x7->512 3x3", (8, 512, 7, 7), (512, 512, 3, 3), 1, 1, 1),
    ("point 8x64x56x56->256 1x1", (8, 64, 56, 56), (256, 64, 1, 1), 1, 0, 1),
    ("depth 8x128x28x28 3x3", (8, 128, 28, 28), (128, 1, 3, 3), 1, 1, 128),
    ("audio 2x80x3000->384 3", (2, 80, 3000), (384, 80, 3), 1, 1, 1),
]


def best_seconds(run):
    best = float("inf")
    begin = time.perf_counter()
    while time.perf_counter() - begin < 0.3:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def main(words):
    channels_last = "--row-major" not in words
    words = [word for word in words if not word.startswith("--")]
    for name, x_shape, w_shape, stride, padding, groups in LAYERS:
        spatial = len(x_shape) - 2
        like = torch.channels_last if channels_last and spatial == 2 else torch.contiguous_format
        x = torch.rand(x_shape).to(memory_format=like)
        w = torch.rand(w_shape).to(memory_format=like)
        convolve = torch.nn.functional.conv2d if spatial == 2 else torch.nn.functional.conv1d
        y = convolve(x, w, None, stride, padding, 1, groups)
        dy = torch.rand_like(y).to(memory_format=like)
        flops = 2.0 * y.numel() * w[0].numel()

        def backward(mask):
            return torch.ops.aten.convolution_backward(
                dy, x, w, None, [stride] * spatial, [padding] * spatial, [1] * spatial, False, [0] * spatial, groups, mask)

        for direction, run in (
            ("forward", lambda: convolve(x, w, None, stride, padding, 1, groups)),
            ("input_grad", lambda: backward([True, False, False])),
            ("weight_grad", lambda: backward([False, True, False])),
        ):
            title = f"{name} {direction}"
            if not all(word in title for word in words):
                continue
            line = f"{title:38}"
            for threads in (1, 2):
                torch.set_num_threads(threads)
                with torch.no_grad():
                    seconds = best_seconds(run)
                line += f" | {threads} thread: {1e3 * seconds:7.3f} ms {flops / seconds / 1e9:6.1f} GFLOP/s"
            print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
