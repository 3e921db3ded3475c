"""The e-graph engine against egglog on the reference workload (tests/support/math_workload.h), in turns.

Each turn runs both three times, and the best of all turns counts: machines are shared. A step is every rule, once, over the whole
e-graph, then rebuilding; both must have the same number of nodes after each.
    pip install egglog
    python bench/egraph_peer.py build/release/bin/bench_egraph [TURNS]
"""

import json
import subprocess
import sys
import time

from egglog.bindings import EGraph

OPS = "Diff Integral Add Sub Mul Div Pow Ln Sqrt Sin Cos Const Var".split()
DATATYPE = """(datatype Math (Diff Math Math) (Integral Math Math) (Add Math Math) (Sub Math Math) (Mul Math Math) (Div Math Math)
  (Pow Math Math) (Ln Math) (Sqrt Math) (Sin Math) (Cos Math) (Const i64) (Var String))"""
RULES = """
(Add a b) -> (Add b a)
(Mul a b) -> (Mul b a)
(Add a (Add b c)) -> (Add (Add a b) c)
(Mul a (Mul b c)) -> (Mul (Mul a b) c)
(Sub a b) -> (Add a (Mul (Const -1) b))
(Add a (Const 0)) -> a
(Mul a (Const 0)) -> (Const 0)
(Mul a (Const 1)) -> a
(Mul a (Add b c)) -> (Add (Mul a b) (Mul a c))
(Add (Mul a b) (Mul a c)) -> (Mul a (Add b c))
(Mul (Pow a b) (Pow a c)) -> (Pow a (Add b c))
(Pow x (Const 1)) -> x
(Pow x (Const 2)) -> (Mul x x)
(Diff x (Add a b)) -> (Add (Diff x a) (Diff x b))
(Diff x (Mul a b)) -> (Add (Mul a (Diff x b)) (Mul b (Diff x a)))
(Diff x (Sin x)) -> (Cos x)
(Diff x (Cos x)) -> (Mul (Const -1) (Sin x))
(Integral (Const 1) x) -> x
(Integral (Cos x) x) -> (Sin x)
(Integral (Sin x) x) -> (Mul (Const -1) (Cos x))
(Integral (Add f g) x) -> (Add (Integral f x) (Integral g x))
(Integral (Sub f g) x) -> (Sub (Integral f x) (Integral g x))
(Integral (Mul a b) x) -> (Sub (Mul a (Integral b x)) (Integral (Mul (Diff x a) (Integral b x)) x))
"""
TERMS = """(Integral (Ln (Var "x")) (Var "x"))
(Integral (Add (Var "x") (Cos (Var "x"))) (Var "x"))
(Integral (Mul (Cos (Var "x")) (Var "x")) (Var "x"))
(Diff (Var "x") (Add (Const 1) (Mul (Const 2) (Var "x"))))
(Diff (Var "x") (Sub (Pow (Var "x") (Const 3)) (Mul (Const 7) (Pow (Var "x") (Const 2)))))
(Add (Mul (Var "y") (Add (Var "x") (Var "y"))) (Sub (Add (Var "x") (Const 2)) (Add (Var "x") (Var "x"))))
(Div (Const 1) (Sub (Div (Add (Const 1) (Sqrt (Var "z"))) (Const 2)) (Div (Sub (Const 1) (Sqrt (Var "z"))) (Const 2))))"""


def run_egglog(steps):
    """A list of (nodes, milliseconds) after steps 0, 1, 2, ..."""
    graph = EGraph()

    def run(text):
        return graph.run_program(*graph.parse_program(text))

    def nodes():
        return sum(int(str(line).strip()) for op in OPS for line in run(f"(print-size {op})"))

    rules = [f"(rewrite {rule.replace('->', '')})" for rule in RULES.strip().splitlines()]
    run("\n".join([DATATYPE, *rules, TERMS]))
    rows = [(nodes(), 0.0)]
    for _ in range(steps):
        begin = time.perf_counter()
        run("(run 1)")
        milliseconds = (time.perf_counter() - begin) * 1e3
        rows.append((nodes(), milliseconds))
    return rows


def run_ours(program):
    lines = subprocess.run([program, "--json"], capture_output=True, check=True, text=True).stdout.splitlines()
    return [(row["nodes"], row["milliseconds"]) for row in map(json.loads, lines)]


def best(a, b):
    if [nodes for nodes, _ in a] != [nodes for nodes, _ in b]:
        sys.exit(f"the numbers of nodes differ: {a} and {b}")
    return [(nodes, min(first, second)) for (nodes, first), (_, second) in zip(a, b)]


def main():
    turns = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    ours = run_ours(sys.argv[1])
    theirs = run_egglog(len(ours) - 1)
    for _ in range(turns):
        ours = best(ours, run_ours(sys.argv[1]))
        for _ in range(3):
            theirs = best(theirs, run_egglog(len(ours) - 1))
    best(ours, theirs)
    print("| step | nodes | Pantala, ms | egglog, ms | ratio |\n|---|---|---|---|---|")
    for step, ((nodes, mine), (_, other)) in enumerate(zip(ours, theirs)):
        if step:
            print(f"| {step} | {nodes} | {mine:.2f} | {other:.2f} | {other / mine:.1f} |")


main()
