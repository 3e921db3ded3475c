"""What PyTorch has computed in double precision, computed through the package: ops with gradients,
optimizers, rate schedules."""

import json
import re

import numpy as np
import pytest

import pantala as pn
from pantala import _pantala as core
from conftest import ROOT
from fills import filled

FOLDER = ROOT / "tests" / "fixtures"
OPS = json.loads((FOLDER / "ops.json").read_text())["cases"]
OPTIMIZERS = json.loads((FOLDER / "optimizers.json").read_text())
SCHEDULES = json.loads((FOLDER / "schedules.json").read_text())
INPUTS = {entry["name"]: entry["inputs"] for entry in core.op_table()}


@pytest.fixture(scope="module")
def recorded():
    return pn.Weights.open(FOLDER / "ops.safetensors.index.json")


def prepared(note, xs):
    """What a case does to its inputs before the op sees them stands in its note."""
    xs = list(xs)
    for name, function, k in re.findall(r"\b(\w+) is (\w+)\(input (\d)\)", note):
        x = xs[int(k)]
        classes = xs[0].shape[-1]
        made = pn.one_hot(x, classes).astype(xs[0].dtype) if function == "one_hot" else getattr(pn, function)(x)
        xs[int(k)] = made
    for name, k in re.findall(r"\b(\w+) is input (\d) > 0", note):
        positive = xs[int(k)] > 0
        xs[int(k)] = positive if name == "condition" else positive.astype(xs[int(k)].dtype)
    for k, function in re.findall(r"\binput (\d) goes through (\w+)", note):
        xs[int(k)] = getattr(pn, function)(xs[int(k)])
    return xs


def called(case, xs):
    attributes = {name: value for name, value in case["attrs"].items() if name != "layout"}
    function = getattr(pn, case["op"])
    if case["op"] in ("concat", "stack", "add_n"):
        return [function(list(xs), **attributes)]
    named = {name: x for (name, _, _), x in zip(INPUTS[case["op"]], xs)}
    result = function(**named, **attributes)
    if isinstance(result, pn.Tensor):
        return [result]
    return list(result)


def step_of(case):
    g = pn.Graph()
    xs, inputs = [], {}
    for k, entry in enumerate(case["inputs"]):
        inputs[f"in{k}"] = filled(entry)
        dtype = pn.i64 if "low" in entry else pn.f32
        xs.append(g.input(f"in{k}", entry["shape"], dtype))
    results = called(case, prepared(case.get("note", ""), xs))
    for k in range(min(len(results), len(case["outputs"]))):
        g.output(f"out{k}", results[k])
    wanted = [k for k, entry in enumerate(case["inputs"]) if "gradient" in entry]
    if wanted:
        terms = []
        for k, entry in enumerate(case["outputs"]):
            if "upstream" in entry:
                upstream = g.constant(filled({**entry, "bound": 1.0}, "upstream"))
                terms.append((results[k] * upstream).sum())
        made = pn.differentiate(g, pn.add_n(terms), [xs[k] for k in wanted])
        for k, gradient in zip(wanted, made.gradients):
            made.graph.output(f"d_in{k}", gradient)
        g = made.graph
    return g, inputs, wanted


def error(got, expected, least):
    scale = max(np.abs(expected).max(initial=0), least)
    return np.abs(got - expected).max(initial=0) / scale


@pytest.mark.parametrize("case", OPS, ids=lambda case: case["id"])
def test_ops_with_gradients(case, recorded):
    g, inputs, wanted = step_of(case)
    outputs = pn.build_inference_session(g, threads=1).run(inputs)
    for k, entry in enumerate(case["outputs"]):
        if f"out{k}" in outputs:
            assert error(outputs[f"out{k}"], recorded[entry["value"]], 0.01) <= case["tol"]
    upstream = max((np.abs(filled({**o, "bound": 1.0}, "upstream")).max(initial=0)
                    for o in case["outputs"] if "upstream" in o), default=0)
    for k in wanted:
        expected = recorded[case["inputs"][k]["gradient"]]
        assert error(outputs[f"d_in{k}"], expected, 0.01 * upstream) <= case["tol"]


@pytest.mark.parametrize("case", OPTIMIZERS, ids=lambda case: case["name"])
def test_optimizers(case):
    options = dict(case["options"])
    optimizer = getattr(pn.optim, case["name"])(**options)
    shape = case["shape"]
    start = filled({"fill": case["weight"], "shape": shape})
    g = pn.Graph()
    w = g.parameter("w", shape, pn.init.from_data(start))
    session = pn.build_session(
        g, (w * g.input("gradient", shape)).sum(), optimizer=optimizer, threads=1
    )
    for step, expected in enumerate(case["weights_after"]):
        name = case["gradients"].replace("{step}", str(step))
        session.step(gradient=filled({"fill": name, "shape": shape}))
        np.testing.assert_allclose(
            session.parameter("w").ravel(), np.ravel(expected), rtol=0, atol=2e-6
        )


@pytest.mark.parametrize("case", SCHEDULES, ids=lambda case: case["name"])
def test_rate_schedules(case):
    schedule = getattr(pn.rates, case["name"])(**case["options"])
    rates = [schedule.lr(step, case["base_lr"]) for step in range(len(case["lr_at_step"]))]
    np.testing.assert_allclose(rates, case["lr_at_step"], rtol=1e-9)
