"""Variants of a workload, compiled once each and then run in turns: what pairs.py and rewriting.py measure with.

A variant is a list of options of `pantala bench`. Its plan is kept in a file, so that a turn costs no compilation. Every turn runs each
variant once, in an order that changes from turn to turn; the best step of all turns counts.
"""

import hashlib
import json
import subprocess
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
PANTALA = PROJECT / "build" / "release" / "bin" / "pantala"
TRAINING = ["mlp32", "mlp128", "mlp_wide128", "lenet64", "resnet18_b8", "resnet50_b4", "whisper_tiny", "tfm8", "smollm2_b1_s128"]


class Refused(Exception):
    """The command ended with an error: a memory limit that cannot be kept, for example."""


def bench(pantala, workload, arguments, seconds):
    command = [str(pantala), "bench", workload, "--json", "--seconds", str(seconds), *arguments]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise Refused(f"{' '.join(command)}: {run.stderr.strip()}")
    return json.loads(run.stdout)


class Variant:
    """What a variant is expected to cost (`compiled`) and its best step so far (`best`), in ms."""

    def __init__(self, pantala, workload, name, arguments, folder):
        self.pantala, self.workload, self.name = pantala, workload, name
        key = hashlib.sha256(" ".join([workload, *arguments]).encode()).hexdigest()[:16]
        self.uncached = arguments
        self.arguments = [*arguments, "--cache", str(Path(folder) / f"{key}.plan")]
        self.compiled = bench(pantala, workload, self.arguments, 0)
        self.times = []

    def turn(self, seconds):
        self.times.append(bench(self.pantala, self.workload, self.arguments, seconds)["ms_min"])

    @property
    def best(self):
        return min(self.times)

    @property
    def spread(self):
        """By how much the turns differ: the middle one over the best."""
        return sorted(self.times)[len(self.times) // 2] / self.best


def run_in_turns(variants, turns, seconds):
    for turn in range(turns):
        shift = turn % len(variants)
        for variant in variants[shift:] + variants[:shift]:
            variant.turn(seconds)
