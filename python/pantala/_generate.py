"""Text from language models of the Llama family."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from . import _pantala as _core
from ._session import Session
from ._weights import PathLike
from .zoo import LlamaConfig


@dataclass(frozen=True)
class Generated:
    """Tokens, and why they ended: "token", "length", "cache" or "callback"."""

    tokens: list[int]
    stopped: str


class Generator:
    """Feeds a model token by token and keeps what it has seen. Its session is to be given weights."""

    def __init__(
        self,
        config: LlamaConfig,
        *,
        batch: int = 1,
        cache: int = 0,
        prefill_chunk: int = 64,
        device: str = "cpu",
        threads: int = 0,
        plan_cache: PathLike = "",
    ) -> None:
        options: dict[str, Any] = {"batch": batch, "cache": cache, "prefill_chunk": prefill_chunk}
        options.update(device=device, threads=threads, plan_cache=os.fspath(plan_cache))
        self._core = _core.Generator(config._as_core(), options)
        self.config = config

    @property
    def session(self) -> Session:
        return Session._from(self._core.session())

    @property
    def capacity(self) -> int:
        """Tokens that a sequence can have."""
        return self._core.capacity()

    @property
    def position(self) -> int:
        """Tokens that it has."""
        return self._core.position()

    def reset(self) -> None:
        """Forgets all tokens."""
        self._core.reset()

    def generate(
        self,
        prompt: Sequence[int],
        *,
        max_tokens: int = 0,
        stop_tokens: Sequence[int] = (),
        temperature: float = 1,
        top_k: int = 0,
        top_p: float = 1,
        seed: int = 0,
        on_token: Callable[[int], Any] | None = None,
    ) -> Generated:
        """Feeds the prompt and picks tokens behind it; `on_token` may end the text with False."""
        options: dict[str, Any] = {"max_tokens": max_tokens, "stop_tokens": list(stop_tokens)}
        options.update(temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
        options["on_token"] = on_token
        tokens, stopped = self._core.generate([int(token) for token in prompt], options)
        return Generated(tokens, stopped)
