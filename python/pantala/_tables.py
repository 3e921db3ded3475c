"""Tables for notebooks."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._compile import Report
    from ._graph import Graph
    from ._session import Profile


def table(heads: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "") -> str:
    def line(cells: Sequence[Any], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{_cell(cell)}</{tag}>" for cell in cells) + "</tr>"

    title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    body = "".join(line(row, "td") for row in rows)
    return f"<table>{title}<thead>{line(heads, 'th')}</thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    return html.escape(f"{value:.4g}" if isinstance(value, float) else str(value))


def graph_table(graph: Graph) -> str:
    rows: list[Sequence[Any]] = [
        (leaf.kind, leaf.name, leaf.value.dtype.value, leaf.value.shape) for leaf in graph.leaves()
    ]
    rows += [("output", n, v.dtype.value, v.shape) for n, v in graph.outputs.items()]
    return table(("kind", "name", "dtype", "shape"), rows, f"{len(graph)} nodes")


def report_table(report: Report) -> str:
    values = report.as_dict()
    stages = [(stage["name"], float(stage["milliseconds"])) for stage in values.get("stages", [])]
    launches = values.get("launches", [])
    heads = ("launch", "layers", "ops", "predicted us")
    rows = [
        (e.get("name", ""), e.get("layers", ""), e.get("ops", ""), float(e.get("predicted_us", 0)))
        for e in launches
    ]
    return table(("stage", "ms"), stages, "compilation") + table(heads, rows, "kernels")


def profile_table(profile: Profile) -> str:
    kernels = profile.data.get("kernels", [])
    heads = ("kernel", "layers", "ops", "runs", "ms")
    rows = [
        (k.get("name", ""), k.get("layers", ""), k.get("ops", ""), k.get("runs", 0),
         float(k.get("milliseconds", 0)))
        for k in kernels
    ]
    return table(heads, rows, "where the time went")


def columns_table(columns: Mapping[str, Any]) -> str:
    heads = list(columns)
    rows = list(zip(*(columns[name].tolist() for name in heads)))
    return table(heads, rows)
