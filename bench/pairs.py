#!/usr/bin/env python3
"""Whether the estimate orders alternatives as the clock does.

For every workload, training and inference: the graph as given, as chosen, with each rule that fits applied alone, the chosen one without
each rule that it uses (and without all that give convolutions another algorithm, or images another layout), and with limits of memory, under
which values are computed again instead of stored. Pairs are the given graph against every other, and the chosen one against those that
lack a rule or keep a limit. Variants run in turns; the pairs whose best times differ by 3 % or more count.

  python bench/pairs.py --budget 480 --save pairs.jsonl  # all workloads, with as many variants as eight minutes have room for
  python bench/pairs.py lenet64 --save pairs.jsonl       # a workload at a time
  python bench/pairs.py --load pairs.jsonl               # how many of all that was saved are ordered right
"""

import argparse
import json
import math
import sys
import tempfile
import time
from pathlib import Path

from turns import PANTALA, PRODUCTS, TRAINING, WINOGRAD, Clock, Refused, Variant, bench, run_in_turns

LIMITS = [0.85, 0.7, 0.55]  # of the peak of the given graph
LAYOUTS = "images-by-planes"


def asked_of(options, rules, given):
    """Name, options and what to compare with, those first that say most: algorithms, layouts, storing, then rule by rule."""
    off = [("Winograd", WINOGRAD), ("products", PRODUCTS), ("direct", [*WINOGRAD, *PRODUCTS]), (LAYOUTS, [LAYOUTS])]
    for name, names in off:
        yield f"without {name}", ["--rewrite", "egraph", "--rules-off", ",".join(names)], ["chosen"]
    for part in LIMITS:
        limit = str(int(part * given.planned["peak_bytes"]))
        yield f"limit {part}", ["--rewrite", "egraph", "--memory-limit", limit], ["given", "chosen"]
    for rule, reached in rules.items():
        others = [name for name in options.rules if name != rule]
        if reached > 0:
            yield f"without {rule}", ["--rewrite", "egraph", "--rules-off", rule], ["chosen"]
        yield f"only {rule}", ["--rewrite", "greedy", "--rules-off", ",".join(others)], ["given"]


def variants_of(options, workload, infer, folder, end):
    """Name -> variant, those that are the same graph as another left out, and those that there is no time for; and the pairs of names."""
    common = (["--infer"] if infer else []) + (["--target", options.target] if options.target else [])
    if options.cost_table:
        common += ["--cost-table", options.cost_table]
    found, pairs, known = {}, [], {}
    needed = 0.0

    def add(name, arguments, *against):
        nonlocal needed
        try:
            variant = Variant(options.pantala, workload, name, [*common, *arguments], folder)
        except Refused as refusal:
            if "memory limit" not in str(refusal):
                raise
            return None
        if variant.same_graph() in known:
            return known[variant.same_graph()]
        if len(found) > 1 and time.monotonic() + needed + variant.expected_seconds() > end:
            return None
        needed += variant.expected_seconds()
        known[variant.same_graph()] = found[name] = variant
        pairs.extend((other, name) for other in dict.fromkeys(against) if other in found)
        return variant

    given = add("given", ["--rewrite", "none"])
    chosen = add("chosen", ["--rewrite", "egraph"], "given")
    rules = bench(options.pantala, workload, [*common, "--rewrite", "egraph", "--plan-only"])["rules"]
    rules = {name: reached for name, reached in rules.items() if name not in options.without}
    for name, arguments, against in asked_of(options, rules, given):
        if time.monotonic() + needed > end:
            break
        add(name, arguments, *(chosen.name if one == "chosen" else one for one in against))
    return found, pairs


def measure(options, workload, infer, end):
    with tempfile.TemporaryDirectory() as folder:
        found, pairs = variants_of(options, workload, infer, options.plans or folder, end)
        if not pairs:
            return []
        run_in_turns(list(found.values()), options.seconds, end, options.turns)
        return [
            {
                "workload": workload, "infer": infer, "a": a, "b": b,
                "measured": [found[a].best, found[b].best],
                "predicted": [found[a].planned["predicted_us"], found[b].planned["predicted_us"]],
                "spread": [found[a].spread, found[b].spread],
            }
            for a, b in pairs
        ]  # fmt: skip


def change(numbers):
    return numbers[1] / numbers[0] - 1


def report(pairs, least):
    right = counted = 0
    for pair in pairs:
        measured, predicted = change(pair["measured"]), change(pair["predicted"])
        counts = abs(measured) >= least
        is_right = (measured < 0) == (predicted < 0)
        counted += counts
        right += counts and is_right
        verdict = ("right" if is_right else "WRONG") if counts else ""
        mode = "infer" if pair["infer"] else "train"
        print(
            f"{Path(pair['workload']).stem:16} {mode} {pair['a']:>28} -> {pair['b']:44}"
            f" measured {measured:+7.1%} predicted {predicted:+7.1%} {verdict}"
        )
    share = right / counted if counted else float("nan")
    print(f"{len(pairs)} pairs, {counted} differ by {least:.0%} or more, {right} of these are ordered right: {share:.0%}")


def all_rules(pantala):
    """The names that the command lists when it is given one that is none."""
    try:
        bench(pantala, "mlp32", ["--rules-off", "?", "--plan-only"])
    except Refused as refusal:
        return [name.strip() for name in str(refusal).split("there are ")[-1].split(",")]
    raise SystemExit("the command takes any name for a rule")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", help="names or ONNX files; none: all nine workloads")
    parser.add_argument("--pantala", default=PANTALA)
    parser.add_argument("--mode", choices=["train", "infer", "both"], default="both")
    parser.add_argument("--budget", type=float, default=0, help="seconds for everything; two turns of each are taken in any case")
    parser.add_argument("--turns", type=int, default=0, help="at most; 0: 3, or as many as fit into the budget")
    parser.add_argument("--plans", help="a folder in which compiled plans are kept for the next call; it must exist")
    parser.add_argument("--without", nargs="*", default=[], help="rules of which no variants are made")
    parser.add_argument("--seconds", type=float, default=0.5, help="of a turn")
    parser.add_argument("--target", default="")
    parser.add_argument("--cost-table", default="")
    parser.add_argument("--least", type=float, default=0.03)
    parser.add_argument("--save", help="append the pairs to this file, a line each, as soon as they are there")
    parser.add_argument("--load", nargs="+", help="report what was saved instead of measuring")
    options = parser.parse_args()
    options.turns = options.turns or (20 if options.budget else 3)
    pairs = []
    if options.load:
        pairs = [json.loads(text) for file in options.load for text in Path(file).read_text(encoding="utf-8").splitlines()]
        report(pairs, options.least)
        return
    options.rules = all_rules(options.pantala)
    modes = {"train": [False], "infer": [True], "both": [False, True]}[options.mode]
    workloads = options.workloads or TRAINING
    # The small ones first: what they leave is for those that take long.
    clock = Clock(options.budget or math.inf, len(workloads) * len(modes))
    for infer in reversed(modes):
        for workload in workloads:
            some = measure(options, workload, infer, clock.next_end())
            print(f"{workload} {'infer' if infer else 'train'}: {len(some)} pairs", file=sys.stderr)
            pairs += some
            if options.save:
                with open(options.save, "a", encoding="utf-8") as file:
                    file.writelines(json.dumps(pair) + "\n" for pair in some)
    report(pairs, options.least)


if __name__ == "__main__":
    main()
