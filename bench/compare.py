#!/usr/bin/env python3
"""Measures Pantala against PyTorch (eager and compiled), JAX, ONNX Runtime and OpenVINO, in turns: ours, theirs, ours, theirs.

Machines are shared and noisy, so a number means something only beside its peer in the same minute: every round gives each side
one turn on the same processors, and the best step of all turns counts. A ratio is the peer's time over ours: above 1, Pantala is
faster; its spread is the least and the largest ratio of one round. A step of training is forward, backward, optimizer, with the
guard of `pantala train`; one of inference the model's outputs; in f32, on data already in memory. `limit` is the time that our
kernels' numbers and bytes need at least on this machine (`pantala devices --probe`) over the time that the step took. Memory is
the most that a process of its own had resident in a few steps, in brackets without what it had before the model was made.

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
WORKLOADS = ["mlp32", "mlp128", "mlp_wide128", "lenet64", "resnet18_b8", "resnet50_b4", "whisper_tiny", "tfm8", "smollm2_b1_s128"]
INFERRED = ["mlp32", "resnet18_b8", "resnet50_b4", "whisper_tiny"]  # what is also measured as inference
TORCH = ["torch", "torchvision", "transformers"]
#         name           title             program and options                     packages that it imports
PEERS = {
    "torch":          ("PyTorch",       ["torch_peer.py"],                        TORCH),
    "torch_compiled": ("torch.compile", ["torch_peer.py", "--compile"],           TORCH),
    "jax":            ("JAX",           ["jax_peer.py"],                          ["jax", "optax"]),
    "onnxruntime":    ("ONNX Runtime",  ["onnx_peer.py", "--runtime=onnxruntime"], [*TORCH, "onnx", "onnxruntime"]),
    "openvino":       ("OpenVINO",      ["onnx_peer.py", "--runtime=openvino"],   [*TORCH, "onnx", "openvino"]),
}  # fmt: skip
# What holds the peers to the instructions of a class of processors, as far as they can be held: ONNX Runtime cannot.
TARGETS = {
    "x86-64-v3": {
        "ONEDNN_MAX_CPU_ISA": "AVX2", "DNNL_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "ATEN_CPU_CAPABILITY": "avx2", "XLA_FLAGS": "--xla_cpu_max_isa=AVX2",
    },
}  # fmt: skip
OURS_MUST_SAY = ["workload", "mode", "threads", "ms_min"]
FIGURE = {"train": "loss_last", "infer": "output_rms"}  # what shows whether a turn computed something that makes sense
NOISY_SPREAD = 1.3  # the best of one turn over the best of another, from where a side's times deserve a warning


class CallError(Exception):
    """A mistake in the call or in what is installed: nothing can be measured."""


class TurnError(Exception):
    """One turn of one side failed; the others go on."""


def how_to_install(venv, packages):
    return f"  {venv}/bin/pip install {' '.join(packages)}"


def packages_of(names):
    return list(dict.fromkeys(package for name in names for package in PEERS[name][2]))


def peer_python(venv, names):
    """The interpreter of the peers' virtual environment, which has every package that they import."""
    packages = packages_of(names)
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

    def __init__(self, name, python, threads, target):
        self.name, self.python, self.threads, self.target = name, python, threads, target
        self.log = tempfile.TemporaryFile("w+")
        program, *options = PEERS[name][1]
        self.process = subprocess.Popen(
            [python, BENCH / "peers" / program, *options, "--threads", str(threads)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True,
            env={**os.environ, **TARGETS.get(target, {})},
        )  # fmt: skip
        ready = self.read()
        self.version, self.workloads, self.modes = ready["version"], ready["workloads"], ready["modes"]

    def has(self, workload, infer):
        return workload in self.workloads and ("infer" if infer else "train") in self.modes

    def memory(self, workload, infer):
        """The most that a new process had resident in a few steps, and what it had before."""
        other = Peer(self.name, self.python, self.threads, self.target)
        try:
            turn = other.turn(workload, infer, 0)
        finally:
            other.close()
        return {"peak_bytes": turn["resident_peak_bytes"], "idle_bytes": turn["resident_idle_bytes"]}

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

    def __init__(self, executable, threads, target):
        if not os.access(executable, os.X_OK):
            raise CallError(
                f"no executable at {executable} (--pantala names another). To build it:\n"
                "  cmake --preset release\n  cmake --build --preset release --target pantala"
            )
        self.executable, self.threads, self.target = executable, threads, target

    def has(self, workload, infer):
        return True

    def memory(self, workload, infer):
        turn = self.turn(workload, infer, 0)
        return {"peak_bytes": turn["resident_peak_bytes"], "idle_bytes": turn["resident_idle_bytes"]}

    def share_of_limit(self, workload, infer, seconds):
        """Of the time of all launches, what the machine's limits say that they need at least."""
        totals = self.turn(workload, infer, seconds, ["--kernels"]).get("totals") or {}
        return totals.get("share_of_limit") or None

    def turn(self, workload, infer, seconds, options=()):
        mode = "infer" if infer else "train"
        command = [self.executable, "bench", workload, *(["--infer"] if infer else []), *options]
        command += ["--seconds", f"{seconds:g}", "--threads", str(self.threads), "--json"]
        command += ["--target", self.target] if self.target else []
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


def spread_of(ours, theirs):
    """The least and the largest ratio of one round."""
    ratios = [peer["ms_min"] / own["ms_min"] for own, peer in zip(ours, theirs)]
    return [min(ratios), max(ratios)] if ratios else None


def summarize(workload, infer, threads, turns, failures, load_average, extra):
    """One line of the result: the best time of every side and the peers' times over ours."""
    best = {side: min(turn["ms_min"] for turn in list_) for side, list_ in turns.items() if list_ and side not in failures}
    peers = {side: ms for side, ms in best.items() if side != "ours"}
    ratios = {side: ms / best["ours"] for side, ms in peers.items()} if "ours" in best else {}

    def least(field):
        return min((turn[field] for turn in turns["ours"] if field in turn), default=None)

    return {
        "workload": workload,
        "mode": "infer" if infer else "train",
        "threads": threads,
        "load_average": load_average,
        "best_ms": best,
        "best_peer": min(peers, key=peers.get) if peers else None,
        "ratio": ratios,
        "ratio_to_best_peer": min(ratios.values()) if ratios else None,
        "ratio_spread": {side: spread_of(turns["ours"], turns[side]) for side in ratios},
        "compile_ms": least("compile_ms"),
        "ready_ms": least("ready_ms"),
        "first_step_ms": {side: list_[0]["first_step_ms"] for side, list_ in turns.items() if list_},
        **extra,
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


def format_memory(memory):
    if not memory:
        return "-"
    peak, idle = memory["peak_bytes"] / 1e6, memory["idle_bytes"] / 1e6
    return f"{peak:.0f} ({peak - idle:.0f})"


def markdown_header(peer_names):
    titles = ["workload", "ours ms", *(f"{PEERS[name][0]} ms" for name in peer_names), "best peer / ours", "spread", "limit",
              "ready ms", "first step ms", "ours MB", "PyTorch MB"]  # fmt: skip
    return f"| {' | '.join(titles)} |\n{'|---' * len(titles)}|"


def markdown_row(row, peer_names):
    name = row["workload"] if row["mode"] == "train" else f"{row['workload']} ({row['mode']})"
    cells = ["failed" if side in row["failures"] else format_ms(row["best_ms"].get(side)) for side in ["ours", *peer_names]]
    ratio, best = row["ratio_to_best_peer"], row["best_peer"]
    cells.append("-" if ratio is None else f"{ratio:.2f} ({PEERS[best][0]})")
    spread = row["ratio_spread"].get(best)
    cells.append("-" if not spread else f"{spread[0]:.2f} to {spread[1]:.2f}")
    cells.append("-" if not row["share_of_limit"] else f"{100 * row['share_of_limit']:.0f} %")
    cells += [format_ms(row["ready_ms"]), format_ms(row["first_step_ms"].get("ours"))]
    cells += [format_memory(row["memory"].get(side)) for side in ("ours", "torch")]
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
    say("workloads", nargs="*", metavar="WORKLOAD", help=f"any of {' '.join(WORKLOADS)} (default: all)")
    say("--seconds", type=positive(float), default=2.0, metavar="S", help="length of a turn (default 2)")
    say("--rounds", type=positive(int), default=5, metavar="N", help="turns of each side (default 5)")
    say("--threads", type=positive(int), default=2, metavar="N", help="threads and processors of each side (default 2)")
    say("--peers", type=peer_list, default=list(PEERS), metavar="LIST", help=f"default: {','.join(PEERS)}")
    say("--venv", type=Path, default=PROJECT / "build" / "peers", metavar="DIR",
        help="virtual environment with the peers' packages (default: build/peers in the project)")  # fmt: skip
    say("--pantala", type=Path, default=PROJECT / "build" / "release" / "bin" / "pantala", metavar="PATH",
        help="our executable (default: build/release/bin/pantala in the project)")  # fmt: skip
    say("--target", choices=list(TARGETS), help="code of this class of processors from every side, as far as it can be held to")
    say("--train", action="store_true", help="training steps alone (default: inference, too)")
    say("--infer", action="store_true", help="the models' outputs alone")
    say("--no-memory", action="store_true", help="leave out the memory, for which every model is made once more")
    say("--packages", action="store_true", help="print the packages of the peers and end")
    say("--json", action="store_true", help="one object a line with all turns, instead of the table")
    say("--markdown", action="store_true", help="the table (the default; beside --json: both)")
    return parser.parse_args()


def open_sides(arguments, peers):
    """Our side; the peers are appended to `peers` as they start, so that the caller can close them whatever happens."""
    try:
        protocol.hold_to_cores(arguments.threads)  # of this process, hence of every side
    except ValueError as error:
        raise CallError(f"--threads: {error}") from None
    ours = Pantala(arguments.pantala.absolute(), arguments.threads, arguments.target)
    python = peer_python(arguments.venv.absolute(), arguments.peers)
    for name in arguments.peers:
        peers.append(Peer(name, python, arguments.threads, arguments.target))
    return ours


def rows_to_measure(arguments, workloads):
    """Workloads with whether they are measured as inference."""
    modes = [] if arguments.infer and not arguments.train else [(name, False) for name in workloads]
    inferred = workloads if arguments.infer else [name for name in workloads if name in INFERRED]
    return modes if arguments.train and not arguments.infer else modes + [(name, True) for name in inferred]


def machine():
    """The processor and what `pantala devices --probe` says of it are named beside the table."""
    with open("/proc/cpuinfo") as file:
        names = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
    return f"{len(os.sched_getaffinity(0))} processors of {names[0] if names else 'an unknown kind'}"


def measure_row(sides, workload, infer, arguments):
    """Turns, memory and share of the limit of one workload."""
    load_average = os.getloadavg()[0]
    turns, failures = take_turns(sides, workload, infer, arguments.seconds, arguments.rounds)
    memory, share = {}, None
    try:
        if "ours" not in failures:
            share = sides[0].share_of_limit(workload, infer, arguments.seconds)
        for side in sides:
            if side.name in ("ours", "torch") and side.name not in failures and not arguments.no_memory:
                memory[side.name] = side.memory(workload, infer)
    except TurnError as error:
        failures["memory or limit"] = str(error)
    extra = {"share_of_limit": share, "memory": memory, "target": arguments.target}
    return summarize(workload, infer, arguments.threads, turns, failures, load_average, extra)


def run(arguments, peers):
    """Measures and prints; true if no turn failed."""
    workloads = arguments.workloads or WORKLOADS
    load_before = os.getloadavg()[0]
    ours = open_sides(arguments, peers)
    known = list(dict.fromkeys(name for peer in peers for name in peer.workloads))
    for workload in workloads:
        if workload not in known:
            raise CallError(f"no peer has the workload {workload!r}; known: {', '.join(known)}")
    table = arguments.markdown or not arguments.json

    def note(text):
        print(f"note: {text}", file=sys.stderr, flush=True)

    note(f"{machine()}; {', '.join(f'{PEERS[peer.name][0]} {peer.version}' for peer in peers)}; {arguments.threads} threads; "
         f"{arguments.rounds} turns of {arguments.seconds:g} s each; load average {load_before:.2f}")  # fmt: skip
    if load_before > 0.5:
        note("the machine is busy with something else: expect noise, above all in times of more than one thread")
    if table:
        print(markdown_header(arguments.peers), flush=True)
    succeeded = True
    for workload, infer in rows_to_measure(arguments, workloads):
        sides = [ours, *(peer for peer in peers if peer.has(workload, infer))]
        row = measure_row(sides, workload, infer, arguments)
        if table:
            print(markdown_row(row, arguments.peers), flush=True)
        if arguments.json:
            print(json.dumps(row), flush=True)
        for side, spread in noise_of(row).items():
            note(f"{workload}: the best times of the turns of {side} differ by a factor of {spread:.2f}")
        for reason in row["failures"].values():
            print(f"error: {reason}", file=sys.stderr, flush=True)
        succeeded = succeeded and not row["failures"]
    return succeeded


def main():
    arguments = parse_arguments()
    if arguments.packages:
        print(*packages_of(arguments.peers))
        return 0
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
