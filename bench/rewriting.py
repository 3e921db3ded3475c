#!/usr/bin/env python3
"""The tables of docs/rewriting.md: the graph as given, the best of greedy orders of the rules, and what the e-graph chooses, all with direct
convolutions; and what it chooses with Winograd's, where that is another graph.

For every workload, training (with the guard that `train` uses) and inference: nodes, launches, bytes that move, the peak of temporaries,
the time of compilation, the estimate, and the best step of all turns. The greedy orders are the listed one and three that are drawn; of those
that come to different graphs the two with the smallest estimates run, and the better one counts.

  python bench/export_transformers.py FOLDER                                  # two imported transformers
  python bench/rewriting.py --imported FOLDER --budget 720 --save table.jsonl # everything, in about twelve minutes
  python bench/rewriting.py lenet64 --save table.jsonl                        # a workload at a time
  python bench/rewriting.py --load table.jsonl                                # the tables of all that was saved, and the geometric means
"""

import argparse
import json
import math
import sys
import tempfile
from pathlib import Path

from turns import PANTALA, WINOGRAD, Clock, Variant, run_in_turns

WORKLOADS = ["mlp_wide128", "lenet64", "resnet18_b8", "resnet50_b4", "whisper_tiny", "tfm8", "smollm2_b1_s128"]
ORDERS = range(4)
MOST_GREEDY = 2
FIGURES = ["nodes", "kernels", "bytes", "peak_bytes", "predicted_us"]


def variants_of(options, workload, infer, folder):
    """By way: the variants of it, of which the best one counts. Ways that come to the same graph share a variant."""
    known = {}

    def variant(name, arguments, off):
        off = ",".join([*off, *filter(None, options.rules_off.split(","))])
        arguments = [*(["--infer"] if infer else []), *arguments, *(["--rules-off", off] if off else [])]
        made = Variant(options.pantala, workload, name, arguments, folder)
        return known.setdefault(made.same_graph(), made)

    ways = {"none": [variant("none", ["--rewrite", "none"], [])], "egraph": [variant("egraph", ["--rewrite", "egraph"], WINOGRAD)]}
    greedy = {variant(f"greedy {k}", ["--rewrite", "greedy", "--greedy-order", str(k)], WINOGRAD): k for k in ORDERS}
    ways["greedy"] = sorted(greedy, key=lambda one: one.planned["predicted_us"])[:MOST_GREEDY]
    winograd = variant("winograd", ["--rewrite", "egraph"], [])
    if winograd not in ways["egraph"]:
        ways["winograd"] = [winograd]
    return ways


def measure(options, workload, infer, end):
    with tempfile.TemporaryDirectory() as folder:
        ways = variants_of(options, workload, infer, options.plans or folder)
        variants = list(dict.fromkeys(one for some in ways.values() for one in some))
        run_in_turns(variants, options.seconds, end, options.turns)
        row = {"workload": Path(workload).stem, "infer": infer}
        for way, some in ways.items():
            one = min(some, key=lambda variant: variant.best)
            row[way] = {figure: one.planned[figure] for figure in FIGURES}
            row[way] |= {"compile_ms": one.compile_ms, "ms": one.best, "spread": one.spread, "turns": len(one.times)}
        return row


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def table(title, rows, columns):
    print(f"| {title} | nodes | launches | MB moved | peak, MB | compile, ms | estimate, ms | step, ms | |")
    print("|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        ways = [row[way] for way in columns]

        def cell(figure, scale=1.0, form=".0f", ways=ways):
            return " / ".join(format(way[figure] * scale, form) for way in ways)

        form = ".3f" if ways[0]["ms"] < 10 else ".1f"
        change = ways[-1]["ms"] / ways[0]["ms"] - 1
        print(
            f"| {row['workload']} | {cell('nodes')} | {cell('kernels')} | {cell('bytes', 1e-6)} | {cell('peak_bytes', 1e-6, '.1f')}"
            f" | {cell('compile_ms')} | {cell('predicted_us', 1e-3, form)} | {cell('ms', 1, form)} | {change:+.1%} |"
        )
    means = [f"{way} {mean([row[way]['ms'] / row[columns[0]]['ms'] for row in rows]) - 1:+.1%}" for way in columns[1:]]
    print(f"\nGeometric mean of the step over {len(rows)}, against {columns[0]}: {', '.join(means)}\n")


def report(rows):
    for infer in (False, True):
        mode = "inference" if infer else "training"
        some = [row for row in rows if row["infer"] == infer]
        if some:
            table(f"{mode}: none / greedy / e-graph", some, ["none", "greedy", "egraph"])
        some = [row for row in some if "winograd" in row]
        if some:
            table(f"{mode}: none / e-graph / with Winograd", some, ["none", "egraph", "winograd"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", help="names or ONNX files; none: the seven larger workloads")
    parser.add_argument("--imported", help="a folder of ONNX files that are measured too")
    parser.add_argument("--pantala", default=PANTALA)
    parser.add_argument("--mode", choices=["train", "infer", "both"], default="both")
    parser.add_argument("--budget", type=float, default=0, help="seconds for everything; two turns of each are taken in any case")
    parser.add_argument("--turns", type=int, default=0, help="at most; 0: 3, or as many as fit into the budget")
    parser.add_argument("--plans", help="a folder in which compiled plans are kept for the next call; it must exist")
    parser.add_argument("--seconds", type=float, default=0.5, help="of a turn; three steps at least")
    parser.add_argument("--rules-off", default="", help="rules that are left out in addition, by name")
    parser.add_argument("--save", help="append each row to this file as soon as it is there")
    parser.add_argument("--load", nargs="+", help="print what was saved instead of measuring")
    options = parser.parse_args()
    options.turns = options.turns or (20 if options.budget else 3)
    if options.load:
        report([json.loads(text) for file in options.load for text in Path(file).read_text(encoding="utf-8").splitlines()])
        return
    workloads = options.workloads or WORKLOADS
    if options.imported:
        workloads = [*workloads, *sorted(map(str, Path(options.imported).glob("*.onnx")))]
    modes = {"train": [False], "infer": [True], "both": [False, True]}[options.mode]
    clock = Clock(options.budget or math.inf, len(workloads) * len(modes))
    rows = []
    for infer in modes:
        for workload in workloads:
            rows.append(measure(options, workload, infer, clock.next_end()))
            ms = rows[-1]["egraph"]["ms"]
            print(f"{rows[-1]['workload']} {'infer' if infer else 'train'}: {ms:.3f} ms, {rows[-1]['none']['turns']} turns", file=sys.stderr)
            if options.save:
                with open(options.save, "a", encoding="utf-8") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
    report(rows)


if __name__ == "__main__":
    main()
