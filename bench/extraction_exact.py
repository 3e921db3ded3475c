"""How far extraction is from the best selection: the same e-graphs solved exactly, as integer programs, by HiGHS.

A node is taken or not, a class is computed by at most one node, whoever is taken has its operands computed, and within a strongly
connected part of the classes a level per class keeps a class from needing itself.
    pip install highspy
    cmake --build --preset release --target bench_extraction
    build/release/bin/bench_extraction --json > graphs.jsonl && python bench/extraction_exact.py graphs.jsonl
"""

import json
import sys
import time

import highspy


def strong_parts(successors):
    """The number of the strongly connected part of each class (Tarjan, without recursion)."""
    index, low, part, stack, on_stack, parts = {}, {}, {}, [], set(), 0
    for start in successors:
        if start in index:
            continue
        work = [(start, iter(successors[start]))]
        index[start] = low[start] = len(index)
        stack.append(start), on_stack.add(start)
        while work:
            at, rest = work[-1]
            for other in rest:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other), on_stack.add(other)
                    work.append((other, iter(successors[other])))
                    break
                if other in on_stack:
                    low[at] = min(low[at], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[at])
                if low[at] == index[at]:
                    while True:
                        member = stack.pop()
                        on_stack.discard(member)
                        part[member] = parts
                        if member == at:
                            break
                    parts += 1
    return part


class Program:
    """The integer program of one e-graph."""

    def __init__(self, graph):
        self.nodes = graph["nodes"]
        self.roots = set(graph["roots"])
        self.members = {}
        for number, (owner, _, _) in enumerate(self.nodes):
            self.members.setdefault(owner, []).append(number)
        successors = {c: sorted({k for n in self.members[c] for k in self.nodes[n][2]}) for c in self.members}
        self.part = strong_parts(successors)
        sizes = {}
        for c in self.part.values():
            sizes[c] = sizes.get(c, 0) + 1
        self.size_of_part = {c: sizes[p] for c, p in self.part.items()}

    def choices(self):
        return sum(len(nodes) > 1 for nodes in self.members.values())

    def solve(self):
        """The selected nodes."""
        self.solver = highspy.Highs()
        self.solver.setOptionValue("output_flag", False)
        for name in ("mip_rel_gap", "mip_abs_gap"):
            self.solver.setOptionValue(name, 0.0)
        self.solver.setOptionValue("mip_feasibility_tolerance", 1e-9)
        infinity = highspy.kHighsInf
        # Costs differ by many orders of magnitude: the largest is a thousand, and the selection is summed up again outside.
        scale = 1000 / max(cost for _, cost, _ in self.nodes)
        self.taken = []
        for _, cost, _ in self.nodes:
            self.taken.append(self.solver.numVariables)
            self.solver.addVar(0, 1)
            self.solver.changeColCost(self.taken[-1], cost * scale)
            self.solver.changeColIntegrality(self.taken[-1], highspy.HighsVarType.kInteger)
        self.levels = {}
        for c, nodes in self.members.items():
            self.row(1 if c in self.roots else 0, 1, [(self.taken[n], 1) for n in nodes])
            if self.size_of_part[c] > 1:
                self.levels[c] = self.solver.numVariables
                self.solver.addVar(0, self.size_of_part[c] - 1)
        for number, (owner, _, children) in enumerate(self.nodes):
            for child in sorted(set(children)):
                terms = [(self.taken[n], 1) for n in self.members[child]]
                if child == owner:  # it would need itself
                    self.row(0, 0, [(self.taken[number], 1)])
                    continue
                self.row(0, infinity, [*terms, (self.taken[number], -1)])
                if self.part[child] == self.part[owner]:
                    size = self.size_of_part[owner]
                    self.row(1 - size, infinity, [(self.levels[owner], 1), (self.levels[child], -1), (self.taken[number], -size)])
        self.solver.run()
        status = self.solver.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            sys.exit(f"the solver stopped: {self.solver.modelStatusToString(status)}")
        values = self.solver.getSolution().col_value
        return [n for n in range(len(self.nodes)) if values[self.taken[n]] > 0.5]

    def row(self, low, high, terms):
        self.solver.addRow(low, high, len(terms), [v for v, _ in terms], [float(k) for _, k in terms])

    def check(self, selection):
        """Every class that is needed is computed, and none needs itself; the cost of what is needed."""
        node_of = {self.nodes[n][0]: n for n in selection}
        cost, state = 0, {}
        work = [(root, False) for root in self.roots]
        while work:
            c, leave = work.pop()
            if leave:
                state[c] = "done"
                continue
            if state.get(c):
                if state[c] == "open":
                    sys.exit("the solver's selection contains itself")
                continue
            state[c] = "open"
            cost += self.nodes[node_of[c]][1]
            work.append((c, True))
            for child in self.nodes[node_of[c]][2]:
                if state.get(child) == "open":
                    sys.exit("the solver's selection contains itself")
                if child not in state:
                    work.append((child, False))
        return cost


def main():
    print("| e-graph | nodes | classes with a choice | given | ours | best | excess | solver, s |\n|---|---|---|---|---|---|---|---|")
    excesses = []
    for line in open(sys.argv[1]):
        graph = json.loads(line)
        begin = time.perf_counter()
        program = Program(graph)
        best = program.check(program.solve())
        seconds = time.perf_counter() - begin
        if best > graph["ours"] * (1 + 1e-9):
            sys.exit(f"{graph['name']}: the solver's selection costs {best}, ours {graph['ours']}")
        excesses.append((graph["ours"] / best - 1, graph["name"], program.choices()))
        print(f"| {graph['name']} | {len(graph['nodes'])} | {program.choices()} | {graph['given']:.0f} | {graph['ours']:.0f} | {best:.0f} | "
              f"{100 * excesses[-1][0]:.4f} % | {seconds:.1f} |", flush=True)
    with_choice = [row for row in excesses if row[2]]
    mean = sum(row[0] for row in with_choice) / max(1, len(with_choice))
    worst = max(excesses)
    print(f"\n{len(excesses)} e-graphs, {len(with_choice)} of them with a choice: mean excess of these {100 * mean:.4f} %, "
          f"worst {100 * worst[0]:.4f} % ({worst[1]})")


main()
