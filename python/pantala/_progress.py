"""How a run shows itself: one line that updates, on a terminal and in a notebook."""

from __future__ import annotations

import re
import shutil
import sys
from typing import Any

_CONTROL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def in_notebook() -> bool:
    """Whether what is displayed goes to a page."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


class TerminalLine:
    """Writes to stderr; the line erases itself by control characters."""

    columns = 0

    def __init__(self) -> None:
        self.columns = shutil.get_terminal_size((80, 24)).columns

    def write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()

    def finish(self) -> None:
        pass


class NotebookLine:
    """Shows the line in a display of its own, which every new one replaces."""

    columns = 110

    def __init__(self) -> None:
        self._handle: Any = None

    def write(self, text: str) -> None:
        line = _CONTROL.sub("", text).replace("\r", "").strip("\n")
        if line.strip():
            self._show(line)

    def _show(self, line: str) -> None:
        from IPython.display import display

        shown = {"text/plain": line}
        if self._handle is None:
            self._handle = display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)

    def finish(self) -> None:
        self._handle = None


def line_for(progress: bool | None) -> TerminalLine | NotebookLine | None:
    """None: where somebody watches; a bool says so."""
    if progress is False:
        return None
    if in_notebook():
        return NotebookLine()
    if progress or sys.stderr.isatty():
        return TerminalLine()
    return None


def options_of(line: TerminalLine | NotebookLine) -> dict[str, Any]:
    """As the module takes them."""
    live = isinstance(line, NotebookLine) or sys.stderr.isatty()
    return {
        "mode": "auto",
        "terminal": live,
        "colour": False,
        "width": line.columns,
        "write": line.write,
    }
