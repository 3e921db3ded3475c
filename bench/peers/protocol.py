"""What the peers share: the timing of one turn and the conversation with compare.py.

A peer is a child process that stays alive, so that a turn costs no start-up. One JSON object a line, both ways:
    peer      {"peer", "version", "workloads", "modes"}             once, when it is ready; or {"error"} and the end
    compare   {"workload", "infer", "seconds"}                      one turn
    peer      {"workload", "mode", "device", "threads", "ms_min", "ms_median", "steps",
               "first_step_ms", "resident_idle_bytes", "resident_peak_bytes"}
              and, of training, "loss_first", "loss_last",
              of inference "output_rms"                             or {"error"}
The end of its input ends the peer. Every turn starts from fresh parameters, as a process of Pantala does: Adam's moments of
dead units decay into denormal numbers after some hundred steps, and a peer that trained on would be the only one to pay.
"""

import argparse
import json
import os
import resource
import statistics
import sys
import time

SEED = 0
MIN_STEPS = 3
WARMUP_STEPS = 2


def cores_to_use(threads):
    """`threads` of the processors that this process may run on, hardware threads of one core last."""
    allowed = sorted(os.sched_getaffinity(0))
    if threads > len(allowed):
        raise ValueError(f"{threads} threads asked for, but this process may use {len(allowed)} processors")

    def rank_in_core(cpu):
        try:
            with open(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") as file:
                text = file.read().strip()
        except OSError:
            return 0
        siblings = []
        for part in text.split(","):
            first, _, last = part.partition("-")
            siblings += range(int(first), int(last or first) + 1)
        return siblings.index(cpu)

    return set(sorted(allowed, key=lambda cpu: (rank_in_core(cpu), cpu))[:threads])


def hold_to_cores(threads):
    """Binds this process and its later children to as many processors as threads are asked for.

    The only limit that JAX's thread pool honours; with everyone on the same processors, nobody gets help from a third one.
    """
    os.sched_setaffinity(0, cores_to_use(threads))


def measure(step, seconds):
    """Runs `step` (which is finished when it returns) for `seconds`: times in milliseconds, and its first and last result."""
    start = time.perf_counter()
    first = step()
    first_step = time.perf_counter() - start
    for _ in range(WARMUP_STEPS):
        step()
    times = []
    begin = time.perf_counter()
    while time.perf_counter() - begin < seconds or len(times) < MIN_STEPS:
        start = time.perf_counter()
        last = step()
        times.append(time.perf_counter() - start)
    figures = {
        "ms_min": min(times) * 1e3,
        "ms_median": statistics.median(times) * 1e3,
        "steps": len(times),
        "first_step_ms": first_step * 1e3,
    }
    return figures, first, last


def parse(description, **options):
    """The arguments of a peer: --threads and its own, as argparse takes them."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--threads", type=int, default=2)
    for name, how in options.items():
        parser.add_argument(f"--{name}", **how)
    return parser.parse_args()


def parse_threads(description):
    return parse(description).threads


def resident_peak():
    """The most that this process ever had in memory, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def claim_stdout():
    """The stream of answers; what libraries print goes to stderr from now on."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers


def serve(answers, peer, version, workloads, threads, prepare, root_mean_square, modes=("train", "infer")):
    """Answers turns until the input ends.

    prepare(name, infer) compiles what it can and returns start(); start() makes fresh parameters and returns step(). A step of
    training returns its loss, one of inference an array, of which `root_mean_square` shows whether it makes sense.
    Only the latest workload is kept, so that large ones need not fit into memory together.
    """

    def say(message):
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    idle = resident_peak()
    say({"peer": peer, "version": version, "workloads": list(workloads), "modes": list(modes)})
    prepared, start = None, None
    for line in sys.stdin:
        turn = json.loads(line)
        name, infer = turn["workload"], turn["infer"]
        if name not in workloads:
            say({"error": f"{peer}: no workload {name!r}; known: {', '.join(workloads)}"})
            continue
        try:
            if prepared != (name, infer):
                prepared, start = None, None
                start = prepare(name, infer)
                prepared = (name, infer)
            figures, first, last = measure(start(), turn["seconds"])
            if infer:
                figures["output_rms"] = float(root_mean_square(last))
            else:
                figures["loss_first"], figures["loss_last"] = float(first), float(last)
            figures["resident_idle_bytes"], figures["resident_peak_bytes"] = idle, resident_peak()
            mode = "infer" if infer else "train"
            say({"workload": name, "mode": mode, "device": "cpu", "threads": threads, **figures})
        except Exception as error:  # whatever a library throws belongs to the one who asked
            say({"error": f"{peer}: {name}: {type(error).__name__}: {error}"})
