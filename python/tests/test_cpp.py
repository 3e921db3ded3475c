"""Nothing of the C++ library's ops, layers, optimizers and schedules is missing, and names and defaults
are the same."""

import re

import pytest

import pantala as pn
from headers import HEADERS, check, functions, structs, text_of

OP_FILES = sorted(p for p in (HEADERS / "ops").glob("*.h") if p.name != "optimizers.h")
# The two functions of one name of C++ are told apart by their arguments there.
SHARED = {"multi_head_attention"}


@pytest.mark.parametrize("header", OP_FILES, ids=lambda path: path.stem)
def test_op_functions(header):
    text = text_of(header)
    problems = []
    found = list(functions(text))
    assert found, "no function was read"
    for name, given in found:
        function = getattr(pn, name, None)
        if function is None:
            problems.append(f"{name} is missing")
        else:
            check(name, function, given, structs(text), problems)
    assert not problems


def test_layers():
    text = text_of(HEADERS / "nn.h")
    problems = []
    names = set()
    for name, given in functions(text):
        names.add(name)
        function = getattr(pn.nn, name, None)
        if function is None:
            problems.append(f"{name} is missing")
        elif name not in SHARED:
            check(name, function, given, structs(text), problems)
    assert not problems
    assert {"linear", "lstm", "transformer_encoder_layer"} <= names


def test_every_op_of_the_table_is_a_function():
    from pantala import _pantala as core

    leaves = {"constant", "data", "input", "parameter", "state", "scalar"}
    table = {entry["name"] for entry in core.op_table()} - leaves
    assert table == set(pn.ops.TABLE)
    assert all(callable(getattr(pn, name)) for name in table)


def test_optimizers_have_the_names_and_defaults_of_their_options():
    text = text_of(HEADERS / "ops" / "optimizers.h")
    options = structs(text)
    found = re.findall(r"Optimizer (\w+)\(double lr = (\w+)::kDefaultLr", text)
    assert len(found) == len({name for name, _ in found}) >= 11
    rates = dict(re.findall(r"struct (\w+) \{\s*static constexpr double kDefaultLr = ([\d.e-]+);", text))
    problems = []
    for name, struct in found:
        function = getattr(pn.optim, name)
        fields = [("double", "lr", rates[struct])]
        fields += [("double", field, default) for field, default in options[struct] if field != "kDefaultLr"]
        check(name, function, fields, {}, problems)
    assert not problems


def test_rate_schedules_have_the_names_and_defaults_of_their_structs():
    text = text_of(HEADERS / "rate_schedule.h")
    options = structs(text)
    kinds = re.search(r"std::variant<([^>]*)>", text)[1]
    names = [re.sub(r"(?<!^)([A-Z])", r"_\1", kind.strip().removesuffix("Rate")).lower()
             for kind in kinds.split(",")]
    problems = []
    for kind, name in zip(kinds.split(","), names):
        function = getattr(pn.rates, name)
        given = [("x", field, default) for field, default in options[kind.strip()] if default]
        required = {"step_size", "gamma", "T_max", "T_0", "max_lr", "total_steps", "base_lr", "milestones"}
        given = [g for g in given if not (g[1] in required and float(g[2].strip('"') or 0) == 0)]
        check(name, function, given, {}, problems)
    assert not problems and len(names) == 10
