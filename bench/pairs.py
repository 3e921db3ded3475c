#!/usr/bin/env python3
"""Whether the estimate orders alternatives as the clock does.

For every workload, training and inference: the graph as given, as chosen, with each rule that fits applied alone, the chosen one without
each rule that it uses, and with limits of memory. Pairs are the given graph against every other, and the chosen one against those that
lack a rule or keep a limit. Variants run in turns; the pairs whose best times differ by 3 % or more count.

  python bench/pairs.py lenet64 --save pairs.jsonl      # a workload at a time, where the machine is quiet for a minute only
  python bench/pairs.py --load pairs.jsonl              # how many of all that was saved are ordered right
"""

import argparse
import json
import tempfile
from pathlib import Path

from turns import PANTALA, TRAINING, Refused, Variant, bench, run_in_turns

LIMITS = [0.85, 0.7, 0.55]  # of the peak of the given graph


def variants_of(options, workload, infer, folder):
    """Name -> variant, those that are the same graph as another left out; and the pairs of names."""
    common = (["--infer"] if infer else []) + (["--target", options.target] if options.target else [])
    if options.cost_table:
        common += ["--cost-table", options.cost_table]
    found, pairs, known = {}, [], {}

    def add(name, arguments, *against):
        try:
            variant = Variant(options.pantala, workload, name, [*common, *arguments], folder)
        except Refused as refusal:
            if "memory limit" not in str(refusal):
                raise
            return None
        # Variants that come to the same estimate, nodes and peak are the same graph.
        key = (variant.compiled["predicted_us"], variant.compiled["nodes"], variant.compiled["peak_bytes"])
        if key in known:
            return found[known[key]]
        known[key] = name
        found[name] = variant
        pairs.extend((other, name) for other in against if other in found)
        return variant

    given = add("given", ["--rewrite", "none"])
    chosen = add("chosen", ["--rewrite", "egraph"], "given")
    rules = bench(options.pantala, workload, [*common, "--rewrite", "egraph"], 0)["rules"]
    rules = {name: reached for name, reached in rules.items() if name not in options.without}
    for rule in rules:
        others = [name for name in options.rules if name != rule]
        add(f"only {rule}", ["--rewrite", "greedy", "--rules-off", ",".join(others)], "given")
        if rules[rule] > 0:
            add(f"without {rule}", ["--rewrite", "egraph", "--rules-off", rule], "chosen")
    for part in LIMITS:
        limit = str(int(part * given.compiled["peak_bytes"]))
        add(f"limit {part}", ["--rewrite", "egraph", "--memory-limit", limit], "given", chosen.name)
    return found, pairs


def measure(options, workload, infer):
    with tempfile.TemporaryDirectory() as folder:
        found, pairs = variants_of(options, workload, infer, options.plans or folder)
        if not pairs or options.turns == 0:
            return []
        run_in_turns(list(found.values()), options.turns, options.seconds)
        return [
            {
                "workload": workload, "infer": infer, "a": a, "b": b,
                "measured": [found[a].best, found[b].best],
                "predicted": [found[a].compiled["predicted_us"], found[b].compiled["predicted_us"]],
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
        bench(pantala, "mlp32", ["--rules-off", "?"], 0)
    except Refused as refusal:
        return [name.strip() for name in str(refusal).split("there are ")[-1].split(",")]
    raise SystemExit("the command takes any name for a rule")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", help="names or ONNX files; none: all nine workloads")
    parser.add_argument("--pantala", default=PANTALA)
    parser.add_argument("--mode", choices=["train", "infer", "both"], default="both")
    parser.add_argument("--turns", type=int, default=3, help="0: nothing is measured, only compiled")
    parser.add_argument("--plans", help="a folder in which compiled plans are kept for the next call; it must exist")
    parser.add_argument("--without", nargs="*", default=[], help="rules of which no variants are made")
    parser.add_argument("--seconds", type=float, default=0.5, help="of a turn")
    parser.add_argument("--target", default="")
    parser.add_argument("--cost-table", default="")
    parser.add_argument("--least", type=float, default=0.03)
    parser.add_argument("--save", help="append the pairs to this file, a line each")
    parser.add_argument("--load", nargs="+", help="report what was saved instead of measuring")
    options = parser.parse_args()
    pairs = []
    if options.load:
        pairs = [json.loads(text) for file in options.load for text in Path(file).read_text().splitlines()]
    else:
        options.rules = all_rules(options.pantala)
        modes = {"train": [False], "infer": [True], "both": [False, True]}[options.mode]
        for workload in options.workloads or TRAINING:
            for infer in modes:
                pairs += measure(options, workload, infer)
    if options.save:
        with open(options.save, "a", encoding="utf-8") as file:
            file.writelines(json.dumps(pair) + "\n" for pair in pairs)
    report(pairs, options.least)


if __name__ == "__main__":
    main()
