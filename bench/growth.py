#!/usr/bin/env python3
"""How cost grows with size: step time over batch, sequence and layers, and compile time over layers, as SVG plots.

    python3 bench/growth.py --out docs/plots        # some minutes; draws and prints the tables of docs/performance.md

Every point is the best of several turns of `pantala bench`, taken in rounds over all points, so that a noisy minute is shared.
A line of slope 1 is drawn beside each curve: what grows faster than it is a surprise.
"""

import argparse
import json
import math
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
#          file             title                                     axis        values                     workload
SERIES = {
    "batch":         ("Step time, LeNet",                       "batch",    [1, 2, 4, 8, 16, 32, 64],  "lenet64:batch={}", "ms_min"),
    "sequence":      ("Step time, transformer of 2 layers, batch 1", "sequence", [128, 256, 512, 1024], "tfm8:layers=2,batch=1,sequence={}", "ms_min"),
    "layers":        ("Step time, transformer, batch 1, 128 tokens", "layers", [2, 4, 8, 16, 32],      "tfm8:batch=1,sequence=128,layers={}", "ms_min"),
    "compile":       ("Compile time, the same transformer",     "layers",   [2, 4, 8, 16, 32],         "tfm8:batch=1,sequence=128,layers={}", "compile_ms"),
}  # fmt: skip
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 480, 320, 70, 20, 40, 50


def measure(pantala, workload, seconds, threads):
    command = [pantala, "bench", workload, "--json", "--seconds", f"{seconds:g}", "--threads", str(threads)]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"error: {' '.join(map(str, command))}: {result.stderr.strip()}")
    return json.loads(result.stdout)


def best_of(arguments):
    """Per series and value the least figure of all rounds."""
    best = {}
    for _ in range(arguments.rounds):
        seen = {}  # two series may be of one workload
        for name, (_, _, values, workload, figure) in SERIES.items():
            for value in values:
                text = workload.format(value)
                if text not in seen:
                    seen[text] = measure(arguments.pantala, text, arguments.seconds, arguments.threads)
                best[name, value] = min(best.get((name, value), math.inf), seen[text][figure])
    return best


def ticks(low, high):
    """Round numbers between two others: 1, 2, 5, 10, ..."""
    found, power = [], 10.0 ** math.floor(math.log10(low))
    while power <= high:
        found += [factor * power for factor in (1, 2, 5) if low <= factor * power <= high]
        power *= 10
    return found


def svg(title, axis, points):
    """A curve with logarithmic axes and, dashed, the line of slope 1 through its last point."""
    xs, ys = [x for x, _ in points], [y for _, y in points]
    slope = [ys[-1] * x / xs[-1] for x in xs]
    low, high = min(ys + slope) * 0.8, max(ys + slope) * 1.25

    def place(x, y):
        across = math.log(x / xs[0]) / math.log(xs[-1] / xs[0])
        up = math.log(y / low) / math.log(high / low)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    def path(values):
        return " ".join(f"{'L' if k else 'M'}{x:.1f},{y:.1f}" for k, (x, y) in enumerate(place(*p) for p in values))

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
             '<rect width="100%" height="100%" fill="white"/>',
             f'<text x="{LEFT}" y="22" font-size="14">{title}</text>']  # fmt: skip
    for y in ticks(low, high):
        at = place(xs[0], y)[1]
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{y:g}</text>')
    for x in xs:
        at = place(x, low)[0]
        parts.append(f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{x}</text>')
    parts.append(f'<path d="{path(list(zip(xs, slope)))}" fill="none" stroke="#999" stroke-dasharray="4 4"/>')
    parts.append(f'<path d="{path(points)}" fill="none" stroke="#0072b2" stroke-width="2"/>')
    parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="#0072b2"/>' for x, y in (place(*p) for p in points)]
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 12}" text-anchor="middle">{axis}</text>')
    parts.append(f'<text x="16" y="{HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 16 {HEIGHT / 2})">ms</text></svg>')
    return "\n".join(parts) + "\n"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    say = parser.add_argument
    say("--out", type=Path, default=PROJECT / "docs" / "plots", metavar="DIR", help="folder of the plots (default: docs/plots)")
    say("--pantala", type=Path, default=PROJECT / "build" / "release" / "bin" / "pantala", metavar="PATH")
    say("--seconds", type=float, default=0.5, metavar="S", help="length of a turn (default 0.5)")
    say("--rounds", type=int, default=3, metavar="N", help="turns of each point (default 3)")
    say("--threads", type=int, default=2, metavar="N")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    best = best_of(arguments)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, (title, axis, values, _, _) in SERIES.items():
        points = [(value, best[name, value]) for value in values]
        (arguments.out / f"growth-{name}.svg").write_text(svg(title, axis, points))
        # The power of growth between neighbours: 1 is linear.
        powers = ["", *(f"{math.log(b[1] / a[1]) / math.log(b[0] / a[0]):.2f}" for a, b in zip(points, points[1:]))]
        print(f"{title} (ms)\n\n| {axis} | {' | '.join(str(v) for v in values)} |\n{'|---' * (len(values) + 1)}|")
        print(f"| ms | {' | '.join(f'{y:.3g}' for _, y in points)} |\n| power | {' | '.join(powers)} |\n")


if __name__ == "__main__":
    main()
