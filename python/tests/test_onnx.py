"""ONNX files, in and out."""

import numpy as np
import pytest

import pantala as pn
from conftest import ROOT

FIXTURES = ROOT / "tests" / "fixtures"


def linear(batch, inputs=3):
    g = pn.Graph()
    g.output("y", pn.relu(pn.nn.linear("fc", g.input("x", (batch, inputs)), 2)))
    return g


def test_out_and_in_again(tmp_path):
    session = pn.build_inference_session(linear(4))
    made = pn.export_onnx(linear(4), session.weights(), tmp_path / "m.onnx", metadata={"classes": "a b"})
    assert not made.symbolic
    read = pn.load_onnx(tmp_path / "m.onnx")
    assert read.opset == 17 and [leaf.name for leaf in read.graph.leaves("parameter")] == ["fc.weight", "fc.bias"]
    other = pn.build_inference_session(read.graph)
    other.load_weights(read.weights)
    x = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    np.testing.assert_array_equal(other.run(x=x)["y"], session.run(x=x)["y"])
    assert pn.load_onnx(tmp_path / "m.onnx", trainable=False).graph.leaves("parameter") == []


def test_files_for_any_batch(tmp_path):
    weights = pn.build_inference_session(linear(1)).weights()
    assert pn.export_onnx(linear, weights, tmp_path / "m.onnx") == pn.ExportedBatch(True, "")
    assert pn.load_onnx(tmp_path / "m.onnx", sizes={"batch": 7}).graph.output("y").shape == (7, 2)
    with pytest.raises(pn.TypeError, match="batch"):
        pn.load_onnx(tmp_path / "m.onnx")

    def of_its_own_size(batch):
        g = pn.Graph()
        g.output("y", g.input("x", (batch, 3)) * g.constant(np.arange(batch * 3, dtype=np.float32).reshape(batch, 3) ** 2))
        return g

    fixed = pn.export_onnx(of_its_own_size, {}, tmp_path / "fixed.onnx")
    assert not fixed.symbolic and fixed.reason

    def broken(batch):
        raise KeyError("no graph")

    with pytest.raises(KeyError, match="no graph"):
        pn.export_onnx(broken, {}, tmp_path / "m.onnx")


def test_large_weights_lie_beside_the_file(tmp_path):
    weights = pn.build_inference_session(linear(1, 5000)).weights()
    pn.export_onnx(linear(1, 5000), weights, tmp_path / "m.onnx", max_inline_bytes=1000)
    assert (tmp_path / "m.onnx.data").stat().st_size >= 40000
    np.testing.assert_array_equal(pn.load_onnx(tmp_path / "m.onnx").weights["fc.weight"], weights["fc.weight"])


def test_what_cannot_be_written_is_listed(tmp_path):
    g = pn.Graph()
    g.output("y", pn.dropout(g.input("x", 4), 0.5))
    with pytest.raises(NotImplementedError, match="random_bits, first at"):
        pn.export_onnx(g, {}, tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


def updates(model):
    states = {leaf.name: leaf.value for leaf in model.graph.leaves("state")}
    return {name for name, value in states.items() for leaf, _ in model.graph.updates if leaf.same(value)}


def test_training_evaluation_and_as_exported():
    file = FIXTURES / "onnx_training" / "norms_newer_train.onnx"
    sizes = {"sizes": {"batch": 4}}
    trained = updates(pn.load_onnx(file, training=True, **sizes))
    assert trained and trained == updates(pn.load_onnx(file, training=True, as_exported=True, **sizes))
    assert not updates(pn.load_onnx(file, evaluation=True, **sizes))
    frozen = FIXTURES / "onnx_training" / "norms_newer_eval.onnx"
    assert updates(pn.load_onnx(frozen, training=True, **sizes)) == trained
    assert not updates(pn.load_onnx(frozen, training=True, as_exported=True, **sizes))
    with pytest.raises(pn.TypeError):
        pn.load_onnx(file, as_exported=True, **sizes)
