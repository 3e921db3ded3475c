#!/usr/bin/env python3
"""Training on several ranks, measured and disturbed (docs/cluster.md has the figures).

  bench/ranks.py speed              2 ranks of 1 thread against 1 rank of 2 threads
  bench/ranks.py network            2 hosts, simulated by network namespaces, with shaped bandwidth
  bench/ranks.py faults --count 50  kills, stops, exits and cut links at random moments

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
            run("tc", "-n", host, "qdisc", "add", "dev", "ve0", "root", "tbf", "rate", rate, "burst", "1mb", "latency", "100ms")


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
              "--mca", "btl_tcp_if_include", "ve0", "--mca", "oob_tcp_if_include", "ve0", "-x", "XDG_CACHE_HOME",
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
    "resnet18": ["--model", "resnet18", "--batch-size", "16", "--set", "data.channels=3", "--set", "data.subset=3200"],
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


def network(options, folder):
    open_hosts()
    try:
        for name in options.workloads:
            for rate in options.rates:
                shape(rate)
                for overlap in ("true", "false"):
                    out = folder / "shaped"
                    trace = folder / "trace.json"
                    words = train(name, folder, out, "--threads", 1, "--max-steps", options.steps, "--epochs", 1000, "--set",
                                  f"distributed.overlap={overlap}", "--trace", trace)
                    run(*job_on_hosts(folder, 2, words), env=ENVIRONMENT, stdout=subprocess.DEVNULL)
                    spans = [event["dur"] for event in json.loads(trace.read_text())["traceEvents"] if event.get("name") == "gradients"]
                    spans = sorted(spans[len(spans) // 2:])
                    print(f"{name} {rate} overlap {overlap}: {items_per_second(out):.0f} items/s, exposed {spans[len(spans) // 2] / 1000:.3f} ms a step",
                          flush=True)
    finally:
        close_hosts()


# --- faults

def processes(out):
    """The ranks of the job with this folder: process ids."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if entry.name.isdigit() and words[0].endswith(b"/pantala") and str(out).encode() in words:
                found.append(int(entry.name))
        except OSError:
            pass
    return found


def fault(kind, out, expected_steps):
    """Disturbs the run at a random moment; the time when it was done."""
    while not (out / "metrics.csv").exists() or len(steps_of(out)) < 2:
        time.sleep(0.01)
    time.sleep(random.uniform(0, 3))
    ranks = processes(out)
    if not ranks:
        return None
    if kind == "cut":
        cut(True)
    else:
        os.kill(random.choice(ranks), {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "exit": signal.SIGABRT}[kind])
    return time.monotonic()


def faults(options, folder):
    random.seed(options.seed)
    open_hosts()
    words = lambda out, *more: [PANTALA, "train", "--model", "mlp", "--batch-size", "64", "--set", "data.subset=6400", "--epochs", 1000,
                                "--set", "distributed.shards=4", "--threads", 1, "--set", "checkpoint.every_steps=200", "--set", "checkpoint.every_epochs=0", "--set", "data.validation=none", "--set",
                                "output.plots=false", "--progress", "plain", "--out", out, *more]
    try:
        whole = folder / "whole"
        run(*words(whole, "--max-steps", options.steps), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
        expected, worst = fingerprint(whole), {}
        for number in range(options.count):
            kind = ["kill", "stop", "exit", "cut"][number % 4]
            out = folder / "run"
            shutil.rmtree(out, ignore_errors=True)
            job = subprocess.Popen([str(word) for word in job_on_hosts(folder, 4, words(out, "--max-steps", options.steps))],
                                   env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            begin = fault(kind, out, options.steps)
            if begin is None:
                job.wait()
                continue
            while processes(out) and time.monotonic() - begin < 60:
                time.sleep(0.02)
            taken = time.monotonic() - begin
            cut(False)
            try:
                _, said = job.communicate(timeout=5)
            except subprocess.TimeoutExpired:  # mpirun may wait for a daemon that it lost; the ranks have ended
                job.kill()
                _, said = job.communicate()
            named = any(word in said for word in ("rank ", "RANK "))
            checkpoints = sorted((out / "checkpoints").iterdir()) if (out / "checkpoints").exists() else []
            ranks = random.choice([1, 2, 4])
            run(*(words(out, "--max-steps", options.steps) if ranks == 1 else job_here(ranks, words(out, "--max-steps", options.steps))),
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
            same = fingerprint(out) == expected
            worst[kind] = max(worst.get(kind, 0), taken)
            print(f"{number + 1:3} {kind:5} ended after {taken:5.2f} s, named {named}, {len(checkpoints)} checkpoints left, "
                  f"resumed on {ranks}: {'same bits' if same else 'OTHER BITS'}", flush=True)
            if not same or taken > 15:
                sys.exit("a fault was not survived as promised")
        print("longest:", ", ".join(f"{kind} {taken:.2f} s" for kind, taken in sorted(worst.items())))
    finally:
        close_hosts()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["speed", "network", "faults"])
    parser.add_argument("--workloads", nargs="+", default=list(WORKLOADS), choices=list(WORKLOADS))
    parser.add_argument("--rates", nargs="+", default=["1gbit", "10gbit"])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        ENVIRONMENT.setdefault("XDG_CACHE_HOME", str(folder / "cache"))
        {"speed": speed, "network": network, "faults": faults}[options.what](options, folder)


if __name__ == "__main__":
    main()
