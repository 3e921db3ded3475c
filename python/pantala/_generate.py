"""Text from language models of the Llama family."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _pantala as _core
from ._session import Session
from ._types import DType, as_array, is_array
from ._weights import PathLike
from .errors import TypeError, fail
from .zoo import LlamaConfig

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Generated:
    """Tokens, and why they ended: "token", "length", "cache" or "callback"."""

    tokens: list[int]
    stopped: str


def _token_list(tokens: Any) -> list[int]:
    """Row by row; TypeError for what is no whole number."""
    array = as_array(tokens if is_array(tokens) else list(tokens), DType.i64)
    array = np.asarray(array)
    if array.dtype.kind not in "iu":
        raise fail(TypeError, f"tokens are whole numbers, not {array.dtype}")
    return [int(token) for token in array.ravel()]


class Sampler:
    """Picks tokens by their logits: the n-th pick is a function of the options, the logits and n.

    >>> import numpy as np
    >>> import pantala as pn
    >>> pn.Sampler(temperature=0).pick(np.array([0.1, 2.0, 0.3], np.float32))
    1
    """

    def __init__(
        self, *, temperature: float = 1, top_k: int = 0, top_p: float = 1, seed: int = 0
    ) -> None:
        options = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
        self._core = _core.Sampler(options)

    def pick(self, logits: Any) -> int:
        return self._core.pick(as_array(logits, DType.f32))

    def restart(self, seed: int) -> None:
        """Back to the first pick, with another seed."""
        self._core.restart(seed)


class Generator:
    """Feeds a model token by token and keeps what it has seen. Its session is to be given weights,
    unless it is one that trains or evaluates the same model already.

    >>> import pantala as pn
    >>> config = pn.zoo.resized(pn.zoo.llama_bytes(), width=32, layers=1)
    >>> model = pn.zoo.llama(config, batch=2, sequence=8)
    >>> session = pn.build_session(model.graph, model.loss, optimizer=pn.optim.adam(1e-3))
    >>> generator = pn.Generator(config, session=session, cache=32)
    >>> len(generator.generate(list(b"abc"), max_tokens=4, temperature=0).tokens)
    4
    >>> generator.rewind(2)
    >>> generator.position, generator.capacity
    (2, 32)
    """

    def __init__(
        self,
        config: LlamaConfig,
        *,
        session: Session | None = None,
        batch: int = 1,
        cache: int = 0,
        prefill_chunk: int = 64,
        device: str = "cpu",
        threads: int = 0,
        plan_cache: PathLike = "",
    ) -> None:
        options: dict[str, Any] = {"batch": batch, "cache": cache, "prefill_chunk": prefill_chunk}
        options.update(device=device, threads=threads, plan_cache=os.fspath(plan_cache))
        made = config._as_core()
        if session is None:
            self._core = _core.Generator(made, options)
        else:
            self._core = _core.Generator(session._core, made, options)
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

    def rewind(self, position: int) -> None:
        """Forgets the tokens from here on."""
        self._core.rewind(position)

    def feed(self, tokens: Any) -> None:
        """Appends tokens [batch, count] to what was fed before; of a batch of 1 also a list."""
        self._core.feed(_token_list(tokens))

    def logits(self, row: int = 0) -> Array:
        """Of the token that follows the last one of a row."""
        return self._core.logits(row)

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
        tokens, stopped = self._core.generate(_token_list(prompt), options)
        return Generated(tokens, stopped)
