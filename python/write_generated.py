"""Writes the parts of the package that follow from the library's tables, beside the module that was
built: write_generated.py PACKAGE_FOLDER. Functions of ops (_ops.py), of optimizers (optim.py) and of
rate schedules (rates.py) with real signatures, types and documentation, and the types of the module
itself (_pantala.pyi).
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

# Ops that save more for their gradients than users ask for: how many results are theirs.
PUBLIC_RESULTS = {
    "attention": 1,
    "batch_norm_train": 3,
    "group_norm": 1,
    "gru": 1,
    "layer_norm": 1,
    "lstm": 2,
    "max_pool2d": 1,
    "rms_norm": 1,
}
# What the results of these are called in C++.
RESULT_NAMES = {
    "batch_norm_train": ["y", "running_mean", "running_var"],
    "lstm": ["h", "c"],
}
# Inputs and attributes that the package fills in: the counters of random numbers.
COUNTERS = {"seed", "draw", "stream"}
TYPES = {"bool": "bool", "int": "int", "float": "float", "ints": "Ints", "dtype": "DTypeLike"}

OPS_HEAD = '''"""All ops, written from the library's table by write_generated.py; `pantala ops` and docs/ops.md
describe them, too."""

# ruff: noqa
from __future__ import annotations

from typing import Literal, NamedTuple, Sequence

from ._graph import Graph
from ._op_parts import INF, Ints, dtype_name, draw, int_list, optional, unpack
from ._tensor import Operand, Tensor, apply_all as _apply
from ._types import DType, DTypeLike
'''


def load(folder: Path) -> Any:
    """The extension alone, without the package around it."""
    (file,) = [f for f in folder.glob("_pantala*.so")]
    spec = importlib.util.spec_from_file_location("_pantala", file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# --- ops


def default_text(attribute: dict[str, Any]) -> str:
    value, kind = attribute["default"], attribute["kind"]
    if kind == "dtype":
        return f"DType.{'boolean' if value == 'bool' else value}"
    if kind == "ints":
        return str(value[0]) if len(value) == 1 else repr(tuple(value))
    if kind == "float" and value in (float("inf"), -float("inf")):
        return "INF" if value > 0 else "-INF"
    return repr(value)


def type_text(attribute: dict[str, Any]) -> str:
    if attribute["choices"]:
        return f"Literal[{', '.join(repr(choice) for choice in attribute['choices'])}]"
    return TYPES.get(attribute["kind"], "str")


def argument_text(attribute: dict[str, Any]) -> str:
    text = f"{attribute['name']}: {type_text(attribute)}"
    return text if attribute["required"] else f"{text} = {default_text(attribute)}"


def value_text(attribute: dict[str, Any]) -> str:
    name = attribute["name"]
    convert = {"ints": "int_list", "dtype": "dtype_name"}.get(attribute["kind"])
    return f"{convert}({name})" if convert else name


class Op:
    def __init__(self, entry: dict[str, Any]) -> None:
        self.entry = entry
        self.name = entry["name"]
        self.inputs = [i for i in entry["inputs"] if i[0] not in COUNTERS or not self.draws]
        self.attributes = [a for a in entry["attributes"] if a["name"] not in COUNTERS]
        # An input and an attribute may have one name; the flag is called after what it switches.
        names = {name for name, _, _ in self.inputs}
        self.switches = [a for a in self.attributes if a["name"] in names]
        self.attributes = [a for a in self.attributes if a["name"] not in names]

    @property
    def draws(self) -> bool:
        return any(a["name"] == "stream" for a in self.entry["attributes"])

    @property
    def variadic(self) -> bool:
        return any(variadic for _, _, variadic in self.inputs)

    def arguments(self) -> str:
        required = [f"{n}: {'Sequence[Tensor]' if v else 'Operand'}" for n, o, v in self.inputs if not o]
        if not self.inputs:
            required.insert(0, "graph: Graph")
        required += [argument_text(a) for a in self.attributes if a["required"]]
        optional = [f"{name}: Operand | None = None" for name, is_optional, _ in self.inputs if is_optional]
        optional += [argument_text(a) for a in self.attributes if not a["required"]]
        return ", ".join(required + optional)

    def operands(self) -> str:
        if self.variadic:
            return f"list({self.inputs[0][0]})"
        given = [name for name, is_optional, _ in self.inputs if not is_optional]
        rest = [name for name, is_optional, _ in self.inputs if is_optional]
        if not rest:
            return f"[{', '.join(given)}]"
        named = ", ".join(f"{name}={name}" for name in rest)
        return f"optional('{self.name}', [{', '.join(given)}], {named})"

    def values(self) -> str:
        pairs = [f"'{a['name']}': {value_text(a)}" for a in self.attributes]
        pairs += [f"'{a['name']}': {a['name']} is not None" for a in self.switches]
        return "{" + ", ".join(pairs) + "}"

    def call(self) -> str:
        if self.draws or not self.inputs:
            owner = "graph" if not self.inputs else self.inputs[0][0]
            return f"draw({owner}, '{self.name}', {self.operands()}, {self.values()})"
        return f"_apply('{self.name}', {self.operands()}, {self.values()})"

    def result_names(self) -> list[str]:
        names = RESULT_NAMES.get(self.name) or list(self.entry["results"])
        return names[: PUBLIC_RESULTS.get(self.name, len(names))]

    def returns(self) -> tuple[str, str]:
        """The type, and how the list of results becomes it."""
        names = self.result_names()
        if names == ["pieces"] or any(name.endswith("?") for name in names):
            return "list[Tensor]", "{}"
        if len(names) == 1:
            return "Tensor", "{}[0]"
        return self.class_name(), f"unpack({self.class_name()}, {{}})"

    def class_name(self) -> str:
        return "".join(part.capitalize() for part in self.name.split("_")) + "Results"

    def docs(self) -> str:
        lines = [f"{self.entry['doc']}"]
        documented = [a for a in self.attributes if a["doc"]]
        if documented:
            lines += [""] + [f"    {a['name']}: {a['doc']}" for a in documented]
        lines = [line.replace("\\", "\\\\").rstrip() for line in lines]
        text = "\n    ".join(line for line in lines)
        return f'    """{text}\n\n    The op `{self.name}{self.entry["signature"]}` of the family {self.entry["family"]}.\n    """'

    def text(self) -> str:
        kind, form = self.returns()
        names = self.result_names()
        parts = []
        if kind == self.class_name():
            fields = "\n".join(f"    {name}: Tensor" for name in names)
            parts.append(f'class {kind}(NamedTuple):\n    """Results of `{self.name}`."""\n\n{fields}\n')
        parts.append(
            f"def {self.name}({self.arguments()}) -> {kind}:\n{self.docs()}\n"
            f"    return {form.format(self.call())}\n"
        )
        return "\n\n".join(parts)


def ops_text(core: Any) -> str:
    ops = [Op(entry) for entry in core.op_table() if not entry["leaf"]]
    ops = [op for op in ops if op.name not in ("constant", "data")]
    names = [op.name for op in ops]
    classes = [op.class_name() for op in ops if op.returns()[0] == op.class_name()]
    ends = f"\n\nTABLE = {names!r}\n__all__ = {names + classes!r}\n"
    return "\n\n".join([OPS_HEAD] + [op.text() for op in ops]) + ends


# --- optimizers and schedules

OPTIM_HEAD = '''"""Optimizers, written from the library's table by write_generated.py.

>>> import pantala as pn
>>> pn.optim.adam(1e-3, weight_decay=0.01).weight_decay
0.01
"""

# ruff: noqa
from __future__ import annotations

from typing import Sequence

from ._optimizer import Optimizer, made as _made
'''

RATES_HEAD = '''"""Schedules of the learning rate, written from the library's table by write_generated.py. A rate is
a function of the number of optimizer steps; in the first `warmup_steps` it grows from almost nothing.

>>> import pantala as pn
>>> pn.rates.cosine(T_max=100).lr(50, base_lr=1.0)
0.5
"""

# ruff: noqa
from __future__ import annotations

from typing import Sequence

from ._rates import PlateauOptions, RateSchedule, made as _made, plateau_made as _plateau_made
'''


def kind_of(value: Any, whole: bool = False) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "str"
    if isinstance(value, list):
        return "Sequence[int]" if whole else "Sequence[float]"
    return "int" if whole else "float"


def number_text(value: Any, whole: bool = False) -> str:
    return repr(int(value)) if whole and not isinstance(value, list) else repr(value)


def optimizer_text(entry: dict[str, Any]) -> str:
    options = entry["options"]
    arguments = [f"{o['name']}: {kind_of(o['default'])} = {o['default']!r}" for o in options]
    arguments.insert(1, "*")
    names = [o["name"] for o in options]
    betas = {"beta1", "beta2"} <= set(names)
    if betas:
        arguments.append("betas: Sequence[float] | None = None")
    docs = "\n".join(
        f"        {o['name']}: {o['doc']}{' ' if o['doc'] else ''}({o['rule']})" for o in options
    )
    if betas:
        docs += "\n        betas: beta1 and beta2 as a pair"
    values = ", ".join(f"{name}={name}" for name in names)
    return (
        f"def {entry['name']}({', '.join(arguments)}) -> Optimizer:\n"
        f'    """{entry["doc"]}\n\n{docs}\n    """\n'
        f"    return _made({entry['name']!r}, dict({values}){', betas' if betas else ''})\n"
    )


def rate_text(entry: dict[str, Any]) -> str:
    required = [o for o in entry["options"] if o["required"]]
    optional = [o for o in entry["options"] if not o["required"]]
    arguments = [f"{o['name']}: {kind_of(o['default'], o['whole'])}" for o in required]
    arguments += [
        f"{o['name']}: {kind_of(o['default'], o['whole'])} = {number_text(o['default'], o['whole'])}"
        for o in optional
    ]
    values = ", ".join(f"{o['name']}={o['name']}" for o in required + optional)
    if entry["name"] == "plateau":
        return (
            f"def plateau({', '.join(arguments)}) -> PlateauOptions:\n"
            '    """Lowers the rate when a metric has stopped improving."""\n'
            f"    return _plateau_made(dict({values}))\n"
        )
    arguments.append("warmup_steps: int = 0")
    values += ", " if values else ""
    return (
        f"def {entry['name']}({', '.join(arguments)}) -> RateSchedule:\n"
        f'    """The schedule `{entry["name"]}`, as PyTorch\'s scheduler of this kind."""\n'
        f"    return _made({entry['name']!r}, dict({values}warmup_steps=warmup_steps))\n"
    )


def main() -> None:
    folder = Path(sys.argv[1])
    core = load(folder)
    optimizers = [optimizer_text(entry) for entry in core.optimizer_table()]
    rates = [rate_text(entry) for entry in core.rate_table()]
    (folder / "_ops.py").write_text(ops_text(core))
    (folder / "optim.py").write_text("\n\n".join([OPTIM_HEAD, *optimizers]))
    (folder / "rates.py").write_text("\n\n".join([RATES_HEAD, *rates]))
    stub = folder / "_pantala.pyi"
    command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "_pantala", "-i", str(folder)]
    subprocess.run([*command, "-o", str(stub)], check=True)
    stub.write_text("from typing import Any\n" + typed(stub.read_text()))


def typed(text: str) -> str:
    """What C++ calls an object is an array, of which the package knows more; containers that it does
    not describe hold anything."""
    for kind, full in {"dict": "dict[str, Any]", "list": "list[Any]", "tuple": "tuple[Any, ...]"}.items():
        text = re.sub(rf"(?<=[ (\[]){kind}(?=[,):\]]| *$| \|)", full, text, flags=re.M)
    text = re.sub(r"(def __eq__\(self, arg): \w+", r"\1: object", text)
    return text.replace("-> object", "-> Any")


if __name__ == "__main__":
    main()
