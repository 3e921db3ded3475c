"""Text from models of the Llama family."""

import numpy as np
import pytest

import pantala as pn

CONFIG = pn.zoo.LlamaConfig(vocabulary=40, hidden=16, intermediate=32, layers=2, heads=2, kv_heads=1, max_positions=64)


@pytest.fixture
def session():
    """One that has learnt to count."""
    model = pn.zoo.llama(CONFIG, batch=8, sequence=12)
    session = pn.build_session(model.graph, model.loss, optimizer=pn.optim.adam(0.02))
    rng = np.random.default_rng(0)
    for _ in range(120):
        first = rng.integers(0, 26, (8, 1))
        session.step(tokens=first + np.arange(12), labels=first + np.arange(1, 13))
    return session


def test_over_the_session_that_trains(session):
    generator = pn.Generator(CONFIG, session=session, cache=32)
    made = generator.generate([3, 4, 5], max_tokens=4, temperature=0)
    assert made == pn.Generated([6, 7, 8, 9], "length")
    with pytest.raises(pn.TypeError, match="generator|generate"):
        pn.Generator(CONFIG, session=session)
    assert np.isfinite(session.step())


def test_a_session_of_its_own(session, tmp_path):
    session.save(tmp_path / "m.safetensors")
    generator = pn.Generator(CONFIG, cache=16, prefill_chunk=4, threads=1)
    generator.session.load(tmp_path / "m.safetensors")
    assert generator.capacity == 16
    stopped = generator.generate([1, 2, 3, 4, 5], temperature=0, stop_tokens=[9])
    assert stopped == pn.Generated([6, 7, 8], "token")
    generator.reset()
    assert generator.generate([1, 2], temperature=0).stopped == "cache"
    seen = []
    generator.reset()
    ended = generator.generate([1, 2], temperature=0, on_token=lambda token: seen.append(token) or len(seen) < 3)
    assert seen == ended.tokens == [3, 4, 5] and ended.stopped == "callback"


def test_logits_are_those_of_the_whole_sequence(session):
    tokens = np.array([[5, 6, 7, 8, 9, 10]])
    model = pn.zoo.llama(CONFIG, batch=1, sequence=6)
    graph = model.graph.with_outputs({"logits": model.logits})
    plan = session.attach("whole", pn.compile(graph.without_updates(), non_finite="none"))
    expected = plan.run(tokens=tokens)["logits"][0]
    generator = pn.Generator(CONFIG, session=session, cache=32, prefill_chunk=2)
    for position in range(6):
        generator.feed(tokens[:, position])
        np.testing.assert_allclose(generator.logits(), expected[position], rtol=1e-3, atol=1e-4)
    generator.rewind(3)
    generator.feed(tokens[0, 3:])
    assert generator.position == 6
    np.testing.assert_allclose(generator.logits(), expected[-1], rtol=1e-3, atol=1e-4)


def test_rows_side_by_side(session):
    generator = pn.Generator(CONFIG, session=session, batch=2, cache=16)
    generator.feed([[1, 2, 3], [11, 12, 13]])
    assert generator.logits(0).argmax() == 4 and generator.logits(1).argmax() == 14


def test_mistakes(session):
    generator = pn.Generator(CONFIG, session=session, cache=8)
    for call, kind in [
        (lambda: generator.feed([40]), pn.TypeError), (lambda: generator.feed(range(9)), pn.ValueError),
        (lambda: generator.logits(), pn.TypeError), (lambda: generator.rewind(1), pn.TypeError),
        (lambda: generator.generate([]), pn.TypeError), (lambda: generator.generate([1], max_tokens=9), pn.ValueError),
        (lambda: generator.generate([1], top_p=2), pn.TypeError), (lambda: pn.Sampler(temperature=-1), pn.TypeError),
    ]:
        with pytest.raises(kind):
            call()
    with pytest.raises(KeyError, match="stop"):
        generator.generate([1], max_tokens=2, on_token=lambda token: {}["stop"])


def test_samplers():
    logits = np.log(np.array([0.5, 0.3, 0.15, 0.05], np.float32))
    sampler = pn.Sampler(seed=1)
    picks = [sampler.pick(logits) for _ in range(4000)]
    np.testing.assert_allclose(np.bincount(picks, minlength=4) / 4000, [0.5, 0.3, 0.15, 0.05], atol=0.03)
    sampler.restart(1)
    assert [sampler.pick(logits) for _ in range(20)] == picks[:20]
    assert {pn.Sampler(top_k=2, seed=k).pick(logits) for k in range(50)} == {0, 1}
    assert {pn.Sampler(top_p=0.75, seed=k).pick(logits) for k in range(50)} == {0, 1}
    with pytest.raises(pn.ValueError):
        sampler.pick(np.array([np.nan, 1], np.float32))
