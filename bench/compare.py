#!/usr/bin/env python3
"""Measures Pantala against PyTorch (eager) and JAX (jit) on the same workloads, in turns: ours, theirs, ours, theirs.

Machines are shared and noisy, so a number means something only beside its peer in the same minute: every round gives each side
one turn on the same processors, and the best step of all turns counts. A ratio is the peer's time over ours: above 1, Pantala is
faster. A step is forward, backward, optimizer (with --infer: the model's outputs), in f32, on data already in memory.

A new workload: a row in `pantala bench`, a row in WORKLOADS of peers/torch_peer.py and peers/jax_peer.py (a peer without it is
left out of its line), and its name below. A new peer: a program that speaks peers/protocol.py, and a row in PEERS.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from peers import protocol

BENCH = Path(__file__).resolve().parent
PROJECT = BENCH.parent
SMALL = ["mlp32", "mlp128", "mlp_wide128", "lenet64"]
WORKLOADS = [*SMALL, "resnet18_b8", "resnet50_b4", "whisper_tiny", "tfm8", "smollm2_b1_s128"]
#        name     title      program                           packages that it imports
PEERS = {
    "torch": ("PyTorch", BENCH / "peers" / "torch_peer.py", ["torch", "torchvision", "transformers"]),
    "jax":   ("JAX",     BENCH / "peers" / "jax_peer.py",   ["jax", "optax"]),
}  # fmt: skip
OURS_MUST_SAY = ["workload", "mode", "threads", "ms_min"]
FIGURE = {"train": "loss_last", "infer": "output_rms"}  # what shows whether a turn computed something that makes sense
NOISY_SPREAD = 1.3  # the best of one turn over the best of another, from where a side's times deserve a warning


class CallError(Exception):
    """A mistake in the call or in what is installed: nothing can be measured."""


class TurnError(Exception):
    """One turn of one side failed; the others go on."""


def how_to_install(venv, packages):
    index = "--extra-index-url https://download.pytorch.org/whl/cpu " if "torch" in packages else ""
    return f"  {venv}/bin/pip install {index}{' '.join(packages)}"


def peer_python(venv, names):
    """The interpreter of the peers' virtual environment, which has every package that they import."""
    packages = [package for name in names for package in PEERS[name][2]]
    python = venv / "bin" / "python"
    if not python.exists():
        raise CallError(
            f"no virtual environment for the peers at {venv} (--venv names another). To make it:\n"
            f"  python3 -m venv {venv}\n{how_to_install(venv, packages)}"
        )
    probe = "import importlib.util, sys; print(*[p for p in sys.argv[1:] if not importlib.util.find_spec(p)])"
    missing = subprocess.run([python, "-c", probe, *packages], capture_output=True, text=True, check=True).stdout.split()
    if missing:
        complete = [name for name in names if not set(PEERS[name][2]) & set(missing)]
        instead = f"\nor measure without: --peers {','.join(complete)}" if complete else ""
        raise CallError(f"{venv} lacks {' and '.join(missing)}. To install:\n{how_to_install(venv, missing)}{instead}")
    return python


class Peer:
    """A peer's process, alive for all workloads; what it writes to stderr is kept for error messages."""

    def __init__(self, name, python, threads):
        self.name = name
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [python, PEERS[name][1], "--threads", str(threads)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True,
        )  # fmt: skip
        ready = self.read()
        self.version, self.workloads = ready["version"], ready["workloads"]

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            self.log.seek(0)
            tail = "".join(self.log.readlines()[-5:]).rstrip()
            raise CallError(f"the {self.name} peer ended with code {self.process.returncode}:\n{tail}")
        return json.loads(line)

    def turn(self, workload, infer, seconds):
        request = {"workload": workload, "infer": infer, "seconds": seconds}
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # read() says how it ended
        answer = self.read()
        if "error" in answer:
            raise TurnError(answer["error"])
        return answer

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.log.close()


class Pantala:
    """Our side: one process of `pantala bench` a turn."""

    name = "ours"

    def __init__(self, executable, threads):
        if not os.access(executable, os.X_OK):
            raise CallError(
                f"no executable at {executable} (--pantala names another). To build it:\n"
                "  cmake --preset release\n  cmake --build --preset release --target pantala"
            )
        self.executable, self.threads = executable, threads

    def turn(self, workload, infer, seconds):
        mode = "infer" if infer else "train"
        command = [self.executable, "bench", workload, *(["--infer"] if infer else [])]
        command += ["--seconds", f"{seconds:g}", "--threads", str(self.threads), "--json"]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode != 0:
            why = result.stderr.strip() or result.stdout.strip() or "it said nothing"
            raise TurnError(f"pantala bench {workload}: exit code {result.returncode}: {why}")
        try:
            lines = [json.loads(line) for line in result.stdout.splitlines() if line.strip()]
        except json.JSONDecodeError as error:
            raise TurnError(f"pantala bench {workload}: not JSON: {error}: {result.stdout.strip()[:200]}") from None
        if len(lines) != 1:
            raise TurnError(f"pantala bench {workload}: one line of JSON expected, got {len(lines)}")
        turn = lines[0]
        absent = [field for field in [*OURS_MUST_SAY, FIGURE[mode]] if field not in turn]
        if absent:
            raise TurnError(f"pantala bench {workload}: its JSON lacks {', '.join(absent)}")
        for field, asked in (("workload", workload), ("mode", mode), ("threads", self.threads)):
            if turn[field] != asked:
                raise TurnError(f"pantala bench {workload}: {field} {asked!r} asked for, {turn[field]!r} measured")
        return turn


def take_turns(sides, workload, infer, seconds, rounds):
    """All turns of one workload by side; a side that fails is out for this workload and its reason is kept."""
    turns = {side.name: [] for side in sides}
    failures = {}
    for _ in range(rounds):
        for side in sides:
            if side.name in failures:
                continue
            try:
                turn = side.turn(workload, infer, seconds)
                name = FIGURE["infer" if infer else "train"]
                # A JSON null stands for something that is not a number.
                if turn[name] is None or not math.isfinite(turn[name]):
                    raise TurnError(f"{side.name}: {workload}: {name} is {turn[name]}, so its time means nothing")
                turns[side.name].append(turn)
            except TurnError as error:
                failures[side.name] = str(error)
    return turns, failures


def summarize(workload, infer, threads, turns, failures, load_average):
    """One line of the result: the best time of every side and the peers' times over ours."""
    best = {side: min(turn["ms_min"] for turn in list_) for side, list_ in turns.items() if list_ and side not in failures}
    peers = {side: ms for side, ms in best.items() if side != "ours"}
    ratios = {side: ms / best["ours"] for side, ms in peers.items()} if "ours" in best else {}
    return {
        "workload": workload,
        "mode": "infer" if infer else "train",
        "threads": threads,
        "load_average": load_average,
        "best_ms": best,
        "best_peer": min(peers, key=peers.get) if peers else None,
        "ratio": ratios,
        "ratio_to_best_peer": min(ratios.values()) if ratios else None,
        "compile_ms": min((turn["compile_ms"] for turn in turns["ours"] if "compile_ms" in turn), default=None),
        "failures": failures,
        "turns": turns,
    }


def noise_of(row):
    """Sides whose turns disagree, with the spread of their bests."""
    spreads = {}
    for side, turns in row["turns"].items():
        times = [turn["ms_min"] for turn in turns]
        if times and max(times) > NOISY_SPREAD * min(times):
            spreads[side] = max(times) / min(times)
    return spreads


def format_ms(ms):
    if ms is None:
        return "-"
    return f"{ms:.3f}" if ms < 10 else f"{ms:.1f}" if ms < 100 else f"{ms:.0f}"


def markdown_header(peer_names):
    titles = "".join(f" {PEERS[name][0]} ms |" for name in peer_names)
    return f"| workload | ours ms |{titles} best peer / ours | compile ms |\n|---|---|{'---|' * len(peer_names)}---|---|"


def markdown_row(row, peer_names):
    name = row["workload"] if row["mode"] == "train" else f"{row['workload']} ({row['mode']})"
    cells = ["failed" if side in row["failures"] else format_ms(row["best_ms"].get(side)) for side in ["ours", *peer_names]]
    ratio = row["ratio_to_best_peer"]
    cells.append("-" if ratio is None else f"{ratio:.2f} ({PEERS[row['best_peer']][0]})")
    cells.append(format_ms(row["compile_ms"]))
    return f"| {name} | {' | '.join(cells)} |"


def positive(kind):
    def parse(text):
        value = kind(text)
        if not 0 < value < math.inf:
            raise argparse.ArgumentTypeError(f"must be positive, not {text}")
        return value

    parse.__name__ = kind.__name__  # argparse names it in its message about text that is no number
    return parse


def peer_list(text):
    names = text.split(",")
    for name in names:
        if name not in PEERS:
            raise argparse.ArgumentTypeError(f"no peer {name!r}; known: {', '.join(PEERS)}")
    return list(dict.fromkeys(names))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    say = parser.add_argument
    say("workloads", nargs="*", metavar="WORKLOAD", help=f"any of {' '.join(WORKLOADS)} (default: {' '.join(SMALL)})")
    say("--seconds", type=positive(float), default=2.0, metavar="S", help="length of a turn (default 2)")
    say("--rounds", type=positive(int), default=3, metavar="N", help="turns of each side (default 3)")
    say("--threads", type=positive(int), default=2, metavar="N", help="threads and processors of each side (default 2)")
    say("--peers", type=peer_list, default=list(PEERS), metavar="LIST", help=f"default: {','.join(PEERS)}")
    say("--venv", type=Path, default=PROJECT / "build" / "peers", metavar="DIR",
        help="virtual environment with the peers' packages (default: build/peers in the project)")  # fmt: skip
    say("--pantala", type=Path, default=PROJECT / "build" / "release" / "bin" / "pantala", metavar="PATH",
        help="our executable (default: build/release/bin/pantala in the project)")  # fmt: skip
    say("--infer", action="store_true", help="the model's outputs instead of training steps")
    say("--json", action="store_true", help="one object a line with all turns, instead of the table")
    say("--markdown", action="store_true", help="the table (the default; beside --json: both)")
    return parser.parse_args()


def open_sides(arguments, peers):
    """Our side; the peers are appended to `peers` as they start, so that the caller can close them whatever happens."""
    try:
        protocol.hold_to_cores(arguments.threads)  # of this process, hence of every side
    except ValueError as error:
        raise CallError(f"--threads: {error}") from None
    ours = Pantala(arguments.pantala.absolute(), arguments.threads)
    python = peer_python(arguments.venv.absolute(), arguments.peers)
    for name in arguments.peers:
        peers.append(Peer(name, python, arguments.threads))
    return ours


def run(arguments, peers):
    """Measures and prints; true if no turn failed."""
    workloads = arguments.workloads or SMALL
    load_before = os.getloadavg()[0]
    ours = open_sides(arguments, peers)
    known = list(dict.fromkeys(name for peer in peers for name in peer.workloads))
    for workload in workloads:
        if workload not in known:
            raise CallError(f"no peer has the workload {workload!r}; known: {', '.join(known)}")
    table = arguments.markdown or not arguments.json

    def note(text):
        print(f"note: {text}", file=sys.stderr, flush=True)

    note(f"{', '.join(f'{PEERS[peer.name][0]} {peer.version}' for peer in peers)}; {arguments.threads} threads; "
         f"{arguments.rounds} turns of {arguments.seconds:g} s each; load average {load_before:.2f}")  # fmt: skip
    if load_before > 0.5:
        note("the machine is busy with something else: expect noise, above all in times of more than one thread")
    if table:
        print(markdown_header(arguments.peers), flush=True)
    succeeded = True
    for workload in workloads:
        sides = [ours, *(peer for peer in peers if workload in peer.workloads)]
        load_average = os.getloadavg()[0]
        turns, failures = take_turns(sides, workload, arguments.infer, arguments.seconds, arguments.rounds)
        row = summarize(workload, arguments.infer, arguments.threads, turns, failures, load_average)
        if table:
            print(markdown_row(row, arguments.peers), flush=True)
        if arguments.json:
            print(json.dumps(row), flush=True)
        for side, spread in noise_of(row).items():
            note(f"{workload}: the best times of the turns of {side} differ by a factor of {spread:.2f}")
        for reason in failures.values():
            print(f"error: {reason}", file=sys.stderr, flush=True)
        succeeded = succeeded and not failures
    return succeeded


def main():
    arguments = parse_arguments()
    peers = []
    try:
        return 0 if run(arguments, peers) else 1
    except CallError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    finally:
        for peer in peers:
            peer.close()


if __name__ == "__main__":
    sys.exit(main())
