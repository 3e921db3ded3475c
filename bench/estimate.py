#!/usr/bin/env python3
"""How well the estimate (src/schedule/estimate.h) predicts what launches take.

Runs `pantala bench W --kernels --json` and compares predicted with measured time over the launches that take more than 20 us (the best of
all steps):
rank correlation (Spearman's), and the median of |predicted - measured| / measured; by workload, by kind of kernel, and over all.

  python bench/estimate.py                         # all workloads, as they are given
  python bench/estimate.py --rewrite egraph        # as they are chosen
  python bench/estimate.py --target x86-64-v3      # AVX2
  python bench/estimate.py --save launches.jsonl lenet64; python bench/estimate.py --load launches.jsonl
"""

import argparse
import hashlib
import json
import statistics
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
WORKLOADS = ["mlp32", "mlp128", "mlp_wide128", "lenet64", "resnet18_b8", "resnet50_b4", "whisper_tiny", "tfm8", "smollm2_b1_s128"]


def ranks(values):
    """The rank of each value; equal ones share the mean of theirs."""
    order = sorted(range(len(values)), key=values.__getitem__)
    result = [0.0] * len(values)
    begin = 0
    while begin < len(order):
        end = begin
        while end < len(order) and values[order[end]] == values[order[begin]]:
            end += 1
        for k in order[begin:end]:
            result[k] = (begin + end - 1) / 2
        begin = end
    return result


def rank_correlation(a, b):
    if len(a) < 3:
        return float("nan")
    a, b = ranks(a), ranks(b)
    mean = (len(a) - 1) / 2
    above = sum((x - mean) * (y - mean) for x, y in zip(a, b))
    below = (sum((x - mean) ** 2 for x in a) * sum((y - mean) ** 2 for y in b)) ** 0.5
    return above / below if below > 0 else float("nan")


def measure(options, workload):
    command = [options.pantala, "bench", workload, "--rewrite", options.rewrite]
    if options.infer:
        command.append("--infer")
    if options.target:
        command += ["--target", options.target]
    if options.cost_table:
        command += ["--cost-table", options.cost_table]
    if options.plans:
        key = hashlib.sha256(" ".join(map(str, command[1:])).encode()).hexdigest()[:16]
        command += ["--cache", str(Path(options.plans) / f"{key}.plan")]
    command += ["--kernels", "--json", "--seconds", str(options.seconds)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{run.stderr}")
    return json.loads(run.stdout)


def kind_of(launch):
    """The name without its number: the archetype, or the op that it is for."""
    return launch["name"].rstrip("0123456789.")


def line(name, launches):
    predicted, measured = [x["predicted_us"] for x in launches], [x["best_us"] for x in launches]
    errors = [abs(p - m) / m for p, m in zip(predicted, measured)]
    ratio = statistics.median(p / m for p, m in zip(predicted, measured))
    total = sum(predicted) / sum(measured)
    print(
        f"{name:32} {len(launches):6} {rank_correlation(predicted, measured):7.3f} {statistics.median(errors):7.1%}"
        f" {ratio:9.2f} {total:9.2f} {sum(measured) / 1000:10.1f}"
    )


def report(runs, least):
    print(f"{'':32} {'count':>6} {'rank':>7} {'error':>7} {'median':>9} {'of sum':>9} {'ms':>10}")
    everything, kinds = [], {}
    for run in runs:
        launches = [x for x in run["launches"] if x["best_us"] > least]
        if not launches:
            continue
        line(f"{run['workload']} {run['mode']}", launches)
        everything += launches
        for launch in launches:
            kinds.setdefault(kind_of(launch), []).append(launch)
    print()
    for kind, launches in sorted(kinds.items(), key=lambda entry: -sum(x["best_us"] for x in entry[1])):
        line(kind, launches)
    print()
    line("all", everything)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", help="names or ONNX files; none: all nine workloads")
    parser.add_argument("--pantala", default=PROJECT / "build" / "release" / "bin" / "pantala")
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--rewrite", default="none")
    parser.add_argument("--target", default="")
    parser.add_argument("--cost-table", default="")
    parser.add_argument("--infer", action="store_true")
    parser.add_argument("--plans", help="a folder in which compiled plans are kept for the next call; it must exist")
    parser.add_argument("--least", type=float, default=20, help="microseconds from which on a launch counts")
    parser.add_argument("--save", help="append what was measured to this file, a line each")
    parser.add_argument("--load", nargs="+", help="report what was saved instead of measuring")
    options = parser.parse_args()
    if options.load:
        runs = [json.loads(text) for file in options.load for text in Path(file).read_text().splitlines()]
    else:
        runs = [measure(options, workload) for workload in options.workloads or WORKLOADS]
    if options.save:
        with open(options.save, "a", encoding="utf-8") as file:
            file.writelines(json.dumps(run) + "\n" for run in runs)
    report(runs, options.least)


if __name__ == "__main__":
    main()
