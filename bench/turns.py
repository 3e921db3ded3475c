"""Variants of a workload, compiled once each and then run in turns: what pairs.py and rewriting.py measure with.

A variant is a list of options of `pantala bench`. What it is expected to cost is planned without making code; its code is kept in a file, so
that a turn costs no compilation. Every turn runs each variant once, in an order that changes from turn to turn; the best step of all turns
counts. How many turns there are follows from the time that there is.
"""

import hashlib
import json
import subprocess
import time
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
PANTALA = PROJECT / "build" / "release" / "bin" / "pantala"
TRAINING = ["mlp32", "mlp128", "mlp_wide128", "lenet64", "resnet18_b8", "resnet50_b4", "whisper_tiny", "tfm8", "smollm2_b1_s128"]
WINOGRAD = [f"convolution{of}-by-winograd{side}" for side in (4, 2) for of in ("", "-input-gradient", "-weight-gradient")]
PRODUCTS = [f"convolution{of}-as-product" for of in ("", "-input-gradient", "-weight-gradient")]
LEAST_TURNS = 2


class Refused(Exception):
    """The command ended with an error: a memory limit that cannot be kept, for example."""


def bench(pantala, workload, arguments):
    command = [str(pantala), "bench", workload, "--json", *arguments]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise Refused(f"{' '.join(command)}: {run.stderr.strip()}")
    return json.loads(run.stdout)


class Variant:
    """What a variant is expected to cost (`planned`), how long its compilation took, and its best step so far, in ms."""

    def __init__(self, pantala, workload, name, arguments, folder):
        self.pantala, self.workload, self.name, self.arguments = pantala, workload, name, arguments
        self.planned = bench(pantala, workload, [*arguments, "--plan-only"])
        key = hashlib.sha256(" ".join([workload, *arguments, json.dumps(self.planned)]).encode()).hexdigest()[:16]
        self.plan, self.note = Path(folder) / f"{key}.plan", Path(folder) / f"{key}.json"
        self.times = []

    def same_graph(self):
        """Equal for variants that come to the same graph, as far as figures tell."""
        return tuple(self.planned[figure] for figure in ("nodes", "kernels", "bytes", "peak_bytes", "predicted_us"))

    def run(self, seconds):
        return bench(self.pantala, self.workload, [*self.arguments, "--cache", str(self.plan), "--seconds", str(seconds)])

    def compile(self):
        """Code and its time, unless a call before this one has left both."""
        if not (self.plan.exists() and self.note.exists()):
            self.plan.unlink(missing_ok=True)
            self.note.write_text(json.dumps({"compile_ms": self.run(0)["compile_ms"]}), encoding="utf-8")
        self.compile_ms = json.loads(self.note.read_text(encoding="utf-8"))["compile_ms"]

    def turn(self, seconds):
        self.times.append(self.run(seconds)["ms_min"])

    def expected_seconds(self):
        """Of a compilation and the least number of turns: what a plan is loaded in, and four steps each."""
        compiling = 0 if self.plan.exists() else 0.5 + 0.04 * self.planned["kernels"] ** 0.7
        return compiling + (1 + LEAST_TURNS) * (0.4 + 4 * self.planned["predicted_us"] * 1e-6)

    @property
    def best(self):
        return min(self.times)

    @property
    def spread(self):
        """By how much the turns differ: the middle one over the best."""
        return sorted(self.times)[len(self.times) // 2] / self.best


class Clock:
    """A time that several things share: each gets its part of what those before it have left."""

    def __init__(self, seconds, parts):
        self.end, self.parts = time.monotonic() + seconds, parts

    def next_end(self):
        now = time.monotonic()
        part = max(0.0, self.end - now) / max(1, self.parts)
        self.parts -= 1
        return now + part


def run_in_turns(variants, seconds, end, most_turns):
    for variant in variants:
        variant.compile()
    turn, longest = 0, 0.0
    while turn < most_turns and (turn < LEAST_TURNS or time.monotonic() + longest < end):
        begin, shift = time.monotonic(), turn % len(variants)
        for variant in variants[shift:] + variants[:shift]:
            variant.turn(seconds)
        longest = max(longest, time.monotonic() - begin)
        turn += 1
