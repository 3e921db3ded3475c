"""Nothing of the C++ library's functions is missing, and names and defaults are the same. The public
headers are read as text: functions with their arguments, and the structs of their options."""

import inspect
import re

import pytest

import pantala as pn
from conftest import ROOT

HEADERS = ROOT / "include" / "pantala"
NUMBER = {"kIgnoredLabel": -100}
# Members of structs of options that several functions share, where they say nothing of a function.
NOT_OF = {("max_pool2d", "count_include_pad"), ("max_pool2d_with_indices", "count_include_pad"),
          ("gru", "c0"), ("rnn", "c0")}


def text_of(path):
    return re.sub(r"//[^\n]*", "", path.read_text())


def arguments(text):
    """(type, name, default or None) of a list of arguments."""
    parts, depth, part = [], 0, ""
    for c in text:
        depth += (c in "<({") - (c in ">)}")
        if c == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += c
    found = []
    for entry in [*parts, part]:
        left, _, default = entry.partition("=")
        words = left.strip().rsplit(" ", 1)
        if len(words) == 2:
            found.append((words[0].strip(), words[1].lstrip("&*"), default.strip() or None))
    return found


def body_at(text, start):
    """What stands between the brace there and the one that closes it."""
    depth, end = 1, start + 1
    while depth:
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        end += 1
    return text[start + 1 : end - 1]


def structs(text):
    """Fields of each struct of options: {name: [(field, default)]}."""
    found = {}
    for match in re.finditer(r"struct (\w+) \{", text):
        fields = []
        for statement in body_at(text, match.end() - 1).split(";"):
            statement = " ".join(statement.split())
            member = re.match(r"([\w:]+(?:<[^>]*>)?) (\w.*)", statement)
            if member and not re.match(r"(static|friend|enum|struct) ", statement) and "(" not in statement:
                parts = re.split(r", (?=\w+ ?[=,]|\w+$)", member[2])
                fields += [tuple(p.strip() for p in f"{part}=".split("=")[:2]) for part in parts]
        found[match[1]] = [(name, default or None) for name, default in fields]
    return found


def functions(text):
    returned = (r"(?:Tensor|Topk|BatchNormResult|LstmStates|LossParts|LstmOutput|RecurrentOutput"
                r"|std::vector<Tensor>|std::pair<Tensor, Tensor>)")
    for kind, name, given in re.findall(rf"\n({returned}) (\w+)\(((?:[^()]|\([^()]*\))*)\);", text):
        if not name.startswith("operator"):
            yield name, arguments(given.replace("Where::current()", "here"))


def value_of(default):
    """What a default of C++ is in Python."""
    default = default.strip()
    if default in ("true", "false"):
        return default == "true"
    if default in NUMBER:
        return NUMBER[default]
    if default in ("{}", ""):
        return None
    if match := re.fullmatch(r"\{(-?\d+)\}", default):
        return int(match[1])
    if match := re.fullmatch(r'"(.*)"', default):
        return match[1]
    if re.fullmatch(r"-?[\d.]+(e-?\d+)?", default):
        return float(default)
    if match := re.fullmatch(r"([\d.]+) / ([\d.]+)", default):
        return float(match[1]) / float(match[2])
    return default.split("::")[-1]


def same(cpp, python):
    if cpp is None:
        return python in (None, ()) or python == [] or python is False
    if isinstance(python, pn.DType):
        return cpp == python.name
    if isinstance(cpp, float) and not isinstance(python, (str, bool, tuple)):
        return float(python) == cpp
    return cpp == python


def expected_arguments(given, options):
    for kind, name, default in given:
        struct = kind.replace("const ", "").replace("&", "").split("::")[-1].strip()
        if struct == "Where":
            continue
        if struct in options:
            yield from options[struct]
        else:
            yield name, default


def check(name, function, given, options, problems):
    parameters = inspect.signature(function).parameters
    for argument, default in expected_arguments(given, options):
        if (name, argument) in NOT_OF:
            continue
        if argument not in parameters:
            problems.append(f"{name}: there is no argument {argument}")
        elif default is not None:
            python = parameters[argument].default
            if python is inspect.Parameter.empty or not same(value_of(default), python):
                problems.append(f"{name}: {argument} is {default} in C++ and {python!r} in Python")


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


def test_the_session_has_all_functions_of_the_class():
    text = text_of(HEADERS / "session.h")
    body = text[text.index("class Session {"):text.index("class SessionSpan")]
    names = set(re.findall(r"\n  [\w:<>, &]+ (\w+)\([^;]*;", body))
    # In Python: properties of other names, `with`, and what only C++ programs need.
    other = {"Session", "run", "input_type", "output_type", "stored_type", "output_memory",
             "stored_memory", "output_scalar", "set_learning_rate", "memory_summary", "compiled",
             "kernels", "add_span", "data"}
    assert len(names) > 40
    assert not [n for n in names - other if not hasattr(pn.Session, n)]
