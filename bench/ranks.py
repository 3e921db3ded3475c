#!/usr/bin/env python3
"""Training on several ranks, measured and disturbed (docs/cluster.md has the figures).

  bench/ranks.py speed              2 ranks of 1 thread against 1 rank of 2 threads
  bench/ranks.py network            2 hosts, simulated by network namespaces, with shaped bandwidth
  bench/ranks.py faults --count 50  kills, stops, exits in a callback and cut links at random moments

`network` and `faults` need root and the packages iproute2 and openmpi-bin. Nothing leaves this machine.
"""
import argparse
import csv
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PANTALA = ROOT / "build/release/bin/pantala"
HOSTS = ["rank-a", "rank-b"]  # network namespaces
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                   OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_hwloc_base_binding_policy="none")


def run(*words, **options):
    return subprocess.run([str(word) for word in words], check=True, **options)


# --- hosts on this machine

def open_hosts():
    close_hosts()
    for host in HOSTS:
        run("ip", "netns", "add", host)
    run("ip", "link", "add", "ve0", "netns", HOSTS[0], "type", "veth", "peer", "name", "ve0", "netns", HOSTS[1])
    for number, host in enumerate(HOSTS):
        run("ip", "-n", host, "addr", "add", f"10.77.0.{number + 1}/24", "dev", "ve0")
        run("ip", "-n", host, "link", "set", "ve0", "up")
        run("ip", "-n", host, "link", "set", "lo", "up")


def close_hosts():
    for host in HOSTS:
        subprocess.run(["ip", "netns", "del", host], stderr=subprocess.DEVNULL)


def shape(rate):
    for host in HOSTS:
        subprocess.run(["tc", "-n", host, "qdisc", "del", "dev", "ve0", "root"], stderr=subprocess.DEVNULL)
        if rate:
            run("tc", "-n", host, "qdisc", "add", "dev", "ve0", "root", "tbf", "rate", rate, "burst", "128kb", "latency", "10ms")


def cut(is_cut):
    run("ip", "-n", HOSTS[1], "link", "set", "ve0", "down" if is_cut else "up")


def host_agent(folder):
    """What mpirun calls instead of ssh."""
    agent = folder / "agent"
    agent.write_text('#!/bin/sh\nhost=$1; shift\nexec ip netns exec "$host" unshare -u sh -c "hostname $host; $*"\n')
    agent.chmod(0o755)
    return agent


def job_on_hosts(folder, ranks, words):
    """mpirun on the first host, with half of the ranks on each."""
    launch = ["mpirun.openmpi", "--mca", "plm_rsh_agent", str(host_agent(folder)), "--mca", "btl", "tcp,self",
              "--mca", "btl_tcp_if_include", "ve0", "--mca", "oob_tcp_if_include", "ve0", "-x", "XDG_CACHE_HOME", "-x", "PANTALA_MPI_FAULT",
              "--host", ",".join(f"{host}:{ranks // 2}" for host in HOSTS), "-n", str(ranks)]
    command = " ".join(launch + [str(word) for word in words])
    return ["ip", "netns", "exec", HOSTS[0], "unshare", "-u", "sh", "-c", f"hostname {HOSTS[0]}; exec {command}"]


def job_here(ranks, words):
    return ["mpirun.openmpi", "-n", str(ranks)] + [str(word) for word in words]


# --- what a run says

def steps_of(folder):
    with open(folder / "metrics.csv", newline="") as file:
        return [row for row in csv.DictReader(file) if row["kind"] == "step"]


def items_per_second(folder):
    """Of the second half of the run."""
    rates = [float(row["items_per_second"]) for row in steps_of(folder) if row["items_per_second"]]
    half = sorted(rates[len(rates) // 2:])
    return half[len(half) // 2]


def fingerprint(folder):
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes())
    newest = max((folder / "checkpoints").iterdir())
    digest.update((newest / "optimizer.safetensors").read_bytes())
    return digest.hexdigest()[:16]


# --- speed

WORKLOADS = {
    "lenet64": ["--model", "lenet", "--batch-size", "64"],
    # 128 x 128 pixels, 64 x 64, and 28 x 28, where a step computes little for 45 MB of gradients.
    "resnet18": ["--model", "resnet18", "--batch-size", "32", "--set", "data.channels=3", "--set", "data.resize=128", "--set", "data.subset=3200"],
    "resnet18_64": ["--model", "resnet18", "--batch-size", "32", "--set", "data.channels=3", "--set", "data.resize=64", "--set", "data.subset=3200"],
    "resnet18_28": ["--model", "resnet18", "--batch-size", "16", "--set", "data.channels=3", "--set", "data.subset=3200"],
    "tfm8": ["--model", "llama-bytes", "--data", "text:{text}", "--batch-size", "8", "--set", "data.sequence=64", "--set",
             "model.width=128", "--set", "model.layers=4"],
}


def workload(name, folder):
    text = folder / "text.txt"
    if not text.exists():
        text.write_bytes((ROOT / "docs/training.md").read_bytes() * 12)
    return [word.replace("{text}", str(text)) for word in WORKLOADS[name]]


def train(name, folder, out, *more):
    return [PANTALA, "train", *workload(name, folder), "--out", out, "--set", "data.validation=none", "--set",
            "output.plots=false", "--set", "output.tensorboard=false", "--set", "output.log_interval=5", "--progress", "none",
            "--restart", *more]


def speed(options, folder):
    for name in options.workloads:
        plain = ["--max-steps", options.steps, "--epochs", 1000]
        alone, ranks = [], []
        for _ in range(options.rounds):
            out = folder / "alone"
            run(*train(name, folder, out, "--threads", 2, *plain), env=ENVIRONMENT, stdout=subprocess.DEVNULL)
            alone.append(items_per_second(out))
            out = folder / "ranks"
            run(*job_here(2, train(name, folder, out, "--threads", 1, *plain)), env=ENVIRONMENT, stdout=subprocess.DEVNULL)
            ranks.append(items_per_second(out))
        best, best_ranks = max(alone), max(ranks)
        print(f"{name}: 1 rank x 2 threads {best:.0f} items/s, 2 ranks x 1 thread {best_ranks:.0f}: {best_ranks / best:.2f}", flush=True)


def exposed_ms(trace):
    """Of a step of the second half of the run: milliseconds that rank 0 has waited for gradients."""
    events = [event for event in json.loads(trace.read_text())["traceEvents"] if event.get("name") == "gradients"]
    spans = sorted(event["dur"] for event in events[len(events) // 2:])
    return spans[len(spans) // 2] / 1000


def alone_ms(name, folder):
    """A step of one rank with its half of a batch."""
    out = folder / "half"
    words = train(name, folder, out, "--threads", 1, "--max-steps", 100, "--epochs", 1000)
    place = words.index("--batch-size") + 1
    half = int(words[place]) // 2
    words[place] = str(half)
    run(*words, env=ENVIRONMENT, stdout=subprocess.DEVNULL)
    return 1000 * half / items_per_second(out)


def predicted(out, rate, step_ms, half, overlap, latency):
    """What `pantala scale` says of two ranks, from the time of a step of one."""
    said = run(PANTALA, "scale", out, "--batch", half, "--threads", 1, "--ranks", 2, "--network", rate, "--latency", latency, "--step-ms",
               f"{step_ms:.4f}", "--plot", out / "scale.svg", "--json", *([] if overlap else ["--no-overlap"]), env=ENVIRONMENT,
               capture_output=True, text=True)
    return json.loads(said.stdout)["ranks"][0]


def network(options, folder):
    open_hosts()
    try:
        for name in options.workloads:
            batch = int(WORKLOADS[name][WORKLOADS[name].index("--batch-size") + 1])
            alone = alone_ms(name, folder)
            print(f"{name}: {alone:.2f} ms a step on one rank with half of the batch", flush=True)
            for rate in options.rates:
                shape(rate.replace("G", "gbit") if rate != "none" else None)
                for overlap in (True, False):
                    out, trace = folder / "shaped", folder / "trace.json"
                    words = train(name, folder, out, "--threads", 1, "--max-steps", options.steps, "--epochs", 1000, "--set",
                                  f"distributed.overlap={str(overlap).lower()}", "--trace", trace)
                    run(*job_on_hosts(folder, 2, words), env=ENVIRONMENT, stdout=subprocess.DEVNULL)
                    step, exposed = 1000 * batch / items_per_second(out), exposed_ms(trace)
                    text = f"{name} {rate} overlap {overlap}: {step:.2f} ms a step, exposed {exposed:.2f} ms"
                    if rate != "none":
                        said = predicted(out, options.link or rate, alone, batch // 2, overlap, options.latency)
                        text += f"; predicted {said['step_ms']:.2f} ({said['step_ms'] / step - 1:+.0%}), exposed {said['exposed_ms']:.2f}"
                    print(text, flush=True)
    finally:
        close_hosts()


# --- faults

KINDS = ["kill", "stop", "exit", "cut"]  # exit: a callback of a rank calls exit()


def rank_of(process):
    for variable in (pathlib.Path("/proc") / str(process) / "environ").read_bytes().split(b"\0"):
        if variable.startswith(b"OMPI_COMM_WORLD_RANK="):
            return int(variable.split(b"=")[1])


def processes(out):
    """The ranks of the job with this folder: process ids, by rank."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if entry.name.isdigit() and words[0].endswith(b"/pantala") and str(out).encode() in words:
                found[rank_of(int(entry.name))] = int(entry.name)
        except OSError:
            pass
    return found


def disturb(kind, out, job):
    """Disturbs the run at a random moment; when that was, and the ranks that it hit. None: the run was over before."""
    while not (out / "metrics.csv").exists() or len(steps_of(out)) < 2 or len(processes(out)) < 4:
        if job.poll() is not None:
            return None
        time.sleep(0.01)
    if kind == "exit":  # which happens by itself
        while len(processes(out)) == 4:
            if job.poll() is not None:
                return None
            time.sleep(0.005)
        return time.monotonic()
    time.sleep(random.uniform(0, 3))
    ranks = processes(out)
    if len(ranks) < 4:
        return None
    if kind == "cut":
        cut(True)
    else:
        os.kill(ranks[disturb.rank], {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}[kind])
    return time.monotonic()


def named_by(said, kind, rank):
    """Who has named a rank that the fault hit: the ranks that are left, or the launcher."""
    hit = ["2", "3", "0", "1"] if kind == "cut" else [str(rank)]
    ours = [line for line in said.splitlines() if line.startswith("pantala: ")]
    if any(f"rank {one} on {HOSTS[0]}" in line or f"rank {one} on {HOSTS[1]}" in line for line in ours for one in hit):
        return "ranks"
    return "launcher" if f"rank {rank} " in said or f"rank {rank}," in said else "nobody"


def one_fault(kind, out, options, words, expected):
    disturb.rank = random.randrange(4)
    environment = dict(ENVIRONMENT)
    if kind == "exit":
        environment["PANTALA_MPI_FAULT"] = f"{disturb.rank}:{random.randrange(20, options.steps * 3 // 4)}:exit"
    job = subprocess.Popen([str(word) for word in job_on_hosts(out.parent, 4, words(out))], env=environment,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    begin = disturb(kind, out, job)
    if begin is None:
        job.communicate()
        return None
    at = len(steps_of(out))
    # While this program does not get on, all of the machine is held (by a measurement of somebody else).
    taken = last = 0
    while processes(out) and taken < 60:
        time.sleep(0.02)
        now = time.monotonic() - begin
        taken += min(now - last, 0.5)
        last = now
    cut(False)
    try:
        said, _ = job.communicate(timeout=3)
    except subprocess.TimeoutExpired:  # mpirun may wait for a daemon that it lost; the ranks have ended
        job.kill()
        said, _ = job.communicate()
    at = max(at, len(steps_of(out)))
    saved = max([int(path.name.split("-")[1]) for path in (out / "checkpoints").glob("step-*")] or [0])
    ranks = random.choice([1, 2, 4])
    run(*(words(out) if ranks == 1 else job_here(ranks, words(out))), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
    return {"kind": kind, "seconds": taken, "named": named_by(said, kind, disturb.rank), "at": at, "lost": at - saved, "resumed_on": ranks,
            "same": fingerprint(out) == expected}


def faults(options, folder):
    random.seed(options.seed)
    open_hosts()
    words = lambda out: [PANTALA, "train", "--model", "mlp", "--batch-size", "64", "--set", "data.subset=6400", "--epochs", 1000,
                         "--set", "distributed.shards=4", "--threads", 1, "--set", "checkpoint.every_steps=50", "--set", "checkpoint.every_epochs=0",
                         "--set", "data.validation=none", "--set", "output.plots=false", "--set", "output.log_interval=1", "--progress", "plain",
                         "--max-steps", options.steps, "--out", out]
    rows = []
    try:
        whole = folder / "whole"
        run(*words(whole), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
        expected = fingerprint(whole)
        print("fault,seconds,named by,at step,steps lost,resumed on,same bits", flush=True)
        while len(rows) < options.count:
            out = folder / "run"
            shutil.rmtree(out, ignore_errors=True)
            row = one_fault(KINDS[len(rows) % len(KINDS)], out, options, words, expected)
            if row is None:
                continue
            rows.append(row)
            print(f"{row['kind']},{row['seconds']:.2f},{row['named']},{row['at']},{row['lost']},{row['resumed_on']},{row['same']}", flush=True)
        for kind in KINDS:
            some = [row for row in rows if row["kind"] == kind]
            if some:
                print(f"{kind}: {len(some)} faults, at most {max(row['seconds'] for row in some):.2f} s, "
                      f"named {sum(row['named'] == 'ranks' for row in some)} by ranks, {sum(row['named'] == 'launcher' for row in some)} by the launcher, "
                      f"lost {max(row['lost'] for row in some)} steps at most, same bits {sum(row['same'] for row in some)}")
        if not all(row["same"] and row["seconds"] < 15 for row in rows):
            sys.exit("a fault was not survived as promised")
    finally:
        close_hosts()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["speed", "network", "faults"])
    parser.add_argument("--workloads", nargs="+", default=list(WORKLOADS), choices=list(WORKLOADS))
    parser.add_argument("--rates", nargs="+", default=["1G", "10G"], help="of the link between the hosts; none: as fast as it is")
    parser.add_argument("--link", help="what the MPI makes of the link, such as 0.6G, for what is predicted; not given: all of it")
    parser.add_argument("--latency", default="60", help="microseconds of a message, for what is predicted")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    ENVIRONMENT.setdefault("PANTALA_MPI_FAULT", "")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        ENVIRONMENT.setdefault("XDG_CACHE_HOME", str(folder / "cache"))
        {"speed": speed, "network": network, "faults": faults}[options.what](options, folder)


if __name__ == "__main__":
    main()
