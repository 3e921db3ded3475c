"""How long the search takes by the number of layers, as a table and a plot.

    build/release/bin/bench_search_time 5 > times.jsonl
    python3 bench/search_plot.py times.jsonl docs/search-time.svg

The table goes to the standard output. Both axes of the plot are logarithmic: what is linear in layers has slope 1, like the dashed lines.
"""

import json
import math
import sys

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 400, 60, 170, 20, 45
COLOURS = ["#0072b2", "#d55e00"]


def table(rows):
    print("| model | layers | nodes | search, ms | per layer | estimate, ms | again |")
    print("|---|---|---|---|---|---|---|")
    for r in rows:
        print(f"| {r['model']} | {r['layers']} | {r['nodes']} | {r['ms']:.0f} | {r['ms'] / r['layers']:.1f} | {r['estimate_ms']:.1f} "
              f"| {r['estimate_again_ms']:.1f} |")


def plot(rows):
    series = {}
    for r in rows:
        series.setdefault(r["model"], []).append((r["layers"], r["ms"]))
    series = {name: points for name, points in series.items() if len(points) > 1}
    values = [ms for points in series.values() for _, ms in points]
    most_layers = max(layers for points in series.values() for layers, _ in points)
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))

    def x(layers):
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log2(layers) / math.log2(most_layers)

    def y(ms):
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - math.log10(ms)) / (high - low)

    def line(x1, y1, x2, y2, style):
        return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {style}/>'

    def text(px, py, content, anchor="middle", colour="#333"):
        return f'<text x="{px:.1f}" y="{py:.1f}" text-anchor="{anchor}" fill="{colour}">{content}</text>'

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    for power in range(low, high + 1):
        out.append(line(LEFT, y(10 ** power), WIDTH - RIGHT, y(10 ** power), 'stroke="#ddd"'))
        out.append(text(LEFT - 6, y(10 ** power) + 4, f"{10 ** power:g}", "end"))
    layers = 1
    while layers <= most_layers:
        out.append(line(x(layers), TOP, x(layers), HEIGHT - BOTTOM, 'stroke="#eee"'))
        out.append(text(x(layers), HEIGHT - BOTTOM + 16, layers))
        layers *= 2
    out.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "layers"))
    out.append(text(LEFT, TOP - 6, "search, ms", "start"))
    for (name, points), colour in zip(series.items(), COLOURS):
        last_layers, last = points[-1]
        first = last * points[0][0] / last_layers  # were it linear
        if math.log10(first) >= low:
            out.append(line(x(points[0][0]), y(first), x(last_layers), y(last), f'stroke="{colour}" stroke-dasharray="4 4" opacity="0.6"'))
        path = " ".join(f"{x(n):.1f},{y(ms):.1f}" for n, ms in points)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{x(n):.1f}" cy="{y(ms):.1f}" r="3" fill="{colour}"/>' for n, ms in points]
        out.append(text(x(last_layers) + 8, y(last) + 4, name, "start", colour))
    return "\n".join(out + ["</svg>", ""])


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        rows = [json.loads(line) for line in file if line.strip()]
    rows.sort(key=lambda r: (r["model"], r["layers"]))
    table(rows)
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(plot(rows))


if __name__ == "__main__":
    main()
