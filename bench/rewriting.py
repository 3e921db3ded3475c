#!/usr/bin/env python3
"""The table of docs/rewriting.md: the graph as given, the best of greedy orders of the rules, and what the e-graph chooses.

For every workload, training (with the guard that `train` uses) and inference: nodes, launches, bytes that move, the peak of temporaries,
the time of compilation without a cache, the estimate, and the best step of all turns. The greedy orders are the listed one and five that
are drawn; the one with the best step counts. Orders that come to the same graph run once.

  python bench/rewriting.py lenet64 --save table.jsonl     # a workload at a time, where the machine is quiet for a minute only
  python bench/rewriting.py --load table.jsonl             # the tables of all that was saved, and the geometric mean
"""

import argparse
import json
import math
import tempfile
from pathlib import Path

from turns import PANTALA, Variant, bench, run_in_turns

WORKLOADS = ["mlp_wide128", "lenet64", "resnet18_b8", "resnet50_b4", "whisper_tiny", "tfm8", "smollm2_b1_s128"]
ORDERS = range(6)
FIGURES = ["nodes", "kernels", "bytes", "peak_bytes", "predicted_us"]


def variants_of(options, workload, infer, folder):
    common = (["--infer"] if infer else []) + (["--rules-off", options.rules_off] if options.rules_off else [])
    ways = [("none", ["--rewrite", "none"]), ("egraph", ["--rewrite", "egraph"])]
    ways += [(f"greedy {k}", ["--rewrite", "greedy", "--greedy-order", str(k)]) for k in ORDERS]
    found, names = {}, {}
    for name, arguments in ways:
        variant = Variant(options.pantala, workload, name, [*common, *arguments], folder)
        key = tuple(variant.compiled[figure] for figure in FIGURES)
        names[name] = found.setdefault(key, variant)
    return list(found.values()), names


def measure(options, workload, infer):
    with tempfile.TemporaryDirectory() as folder:
        variants, names = variants_of(options, workload, infer, options.plans or folder)
        if options.turns == 0:
            return None
        run_in_turns(variants, options.turns, options.seconds)
        ways = {"none": names["none"], "egraph": names["egraph"]}
        ways["greedy"] = min((names[f"greedy {k}"] for k in ORDERS), key=lambda variant: variant.best)
        row = {"workload": Path(workload).stem, "infer": infer}
        for way, variant in ways.items():
            compiled = bench(options.pantala, workload, variant.uncached, 0)
            row[way] = {figure: variant.compiled[figure] for figure in FIGURES}
            row[way] |= {"compile_ms": compiled["compile_ms"], "ms": variant.best, "spread": variant.spread}
        return row


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def report(rows):
    for infer in (False, True):
        some = [row for row in rows if row["infer"] == infer]
        if not some:
            continue
        print(f"| {'inference' if infer else 'training'} | nodes | launches | MB moved | peak, MB | compile, ms | estimate, ms | step, ms | |")
        print("|---|---|---|---|---|---|---|---|---|")
        for row in some:
            ways = [row["none"], row["greedy"], row["egraph"]]

            def cell(figure, scale=1.0, form=".0f", ways=ways):
                return " / ".join(format(way[figure] * scale, form) for way in ways)

            form = ".3f" if ways[0]["ms"] < 10 else ".1f"
            change = ways[2]["ms"] / ways[0]["ms"] - 1
            print(
                f"| {row['workload']} | {cell('nodes')} | {cell('kernels')} | {cell('bytes', 1e-6)} | {cell('peak_bytes', 1e-6, '.1f')}"
                f" | {cell('compile_ms')} | {cell('predicted_us', 1e-3, form)} | {cell('ms', 1, form)} | {change:+.1%} |"
            )
        means = {way: mean([row[way]["ms"] / row["none"]["ms"] for row in some]) for way in ("greedy", "egraph")}
        print(f"\nGeometric mean of the step over {len(some)}: greedy {means['greedy'] - 1:+.1%}, e-graph {means['egraph'] - 1:+.1%}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", help="names or ONNX files; none: the seven larger workloads")
    parser.add_argument("--pantala", default=PANTALA)
    parser.add_argument("--mode", choices=["train", "infer", "both"], default="both")
    parser.add_argument("--turns", type=int, default=3, help="0: nothing is measured, only compiled")
    parser.add_argument("--plans", help="a folder in which compiled plans are kept for the next call; it must exist")
    parser.add_argument("--seconds", type=float, default=1, help="of a turn")
    parser.add_argument("--rules-off", default="", help="rules that are left out, by name")
    parser.add_argument("--save", help="append the rows to this file, a line each")
    parser.add_argument("--load", nargs="+", help="print what was saved instead of measuring")
    options = parser.parse_args()
    rows = []
    if options.load:
        rows = [json.loads(text) for file in options.load for text in Path(file).read_text().splitlines()]
    else:
        modes = {"train": [False], "infer": [True], "both": [False, True]}[options.mode]
        rows = [measure(options, workload, infer) for workload in options.workloads or WORKLOADS for infer in modes]
        rows = [row for row in rows if row]
    if options.save:
        with open(options.save, "a", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    report(rows)


if __name__ == "__main__":
    main()
