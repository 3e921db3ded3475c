"""Mistakes are exceptions of Pantala and of the built-in class that fits, at the user's line."""

import inspect

import numpy as np
import pytest

import pantala as pn


def line(below):
    """The place of the line so far below the call."""
    return f"test_errors.py:{inspect.currentframe().f_back.f_lineno + below}"


def test_a_wrong_shape_names_op_shapes_and_line():
    g = pn.Graph()
    a, b = g.input("a", (64, 784)), g.input("b", (128, 10))
    with pytest.raises(TypeError) as caught:
        here = line(1)
        pn.matmul(a, b)
    assert isinstance(caught.value, pn.TypeError)
    assert str(caught.value) == f"matmul ({here}): inner sizes differ: a f32[64,784], b f32[128,10]"
    assert caught.value.place == here


def test_layers_name_themselves_and_the_line():
    x = pn.Graph().input("x", (64, 784))
    with pytest.raises(pn.TypeError) as caught:
        here = line(1)
        pn.nn.conv2d("conv1", x, 8, 3)
    assert "conv1" in str(caught.value) and here in str(caught.value)


def test_operators_name_the_line():
    g = pn.Graph()
    x, y = g.input("x", 3), g.input("y", 4)
    with pytest.raises(pn.TypeError) as caught:
        here = line(1)
        x + y
    assert here in str(caught.value)


@pytest.mark.parametrize("call, kind", [
    (lambda g: g.input("x", (2, -3)), TypeError),
    (lambda g: g.input("x", 2, "f31"), TypeError),
    (lambda g: g.input("x", "abc"), TypeError),
    (lambda g: (g.input("x", 2), g.input("x", 2)), TypeError),
    (lambda g: g.leaf("weight"), TypeError),
    (lambda g: pn.relu(3), TypeError),
    (lambda g: pn.relu("x"), TypeError),
    (lambda g: g.input("x", 2) + "y", TypeError),
    (lambda g: pn.softmax(g.input("x", 2), axis=5), TypeError),
    (lambda g: pn.clamp(g.input("x", 2), low="a"), TypeError),
    (lambda g: pn.mse_loss(g.input("x", 2), 1.0, reduction="mid"), TypeError),
    (lambda g: pn.build_session(g, g.input("x", 2)), TypeError),
    (lambda g: pn.build_inference_session(g), TypeError),
    (lambda g: g.input("x", 2) + pn.Graph().input("y", 2), TypeError),
    (lambda g: pn.Weights.open("/nowhere/model.safetensors"), OSError),
    (lambda g: pn.load_onnx("/nowhere/model.onnx"), OSError),
    (lambda g: pn.load_onnx(b"no protobuf at all"), OSError),
    (lambda g: pn.load_plan("/nowhere/plan"), OSError),
    (lambda g: pn.parse_graph("what is this"), OSError),
    (lambda g: pn.data.read_csv("/nowhere/table.csv"), OSError),
    (lambda g: pn.optim.adam(lr=-1), TypeError),
    (lambda g: pn.optim.adam(betas=(0.9,)), TypeError),
    (lambda g: pn.rates.cosine(T_max=0), TypeError),
    (lambda g: pn.zoo.model("lenot"), TypeError),
    (lambda g: pn.init.initializer("ones"), TypeError),
    (lambda g: pn.compile(g, devise="cpu"), TypeError),
    (lambda g: pn.compile(g, rewrite="all"), TypeError),
])
def test_every_mistake_is_an_error_of_both_kinds(call, kind):
    with pytest.raises(pn.Error) as caught:
        call(pn.Graph())
    assert isinstance(caught.value, kind)
    assert caught.value.place.startswith("test_errors.py:")
    assert caught.value.place in str(caught.value)


def test_damaged_files(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"\xff" * 40)
    with pytest.raises(OSError) as caught:
        pn.Weights.open(path)
    assert isinstance(caught.value, pn.ParseError) and "model.safetensors" in str(caught.value)


def test_the_nearest_name_is_told():
    with pytest.raises(pn.TypeError, match="lenet"):
        pn.zoo.model("lenett")
    with pytest.raises(pn.TypeError, match="numerics"):
        pn.compile(pn.Graph(), numeric="fast")


# --- sessions


def test_wrong_inputs(session):
    for name, values in {
        "x": np.ones((8, 3), np.float64),
        "y": np.ones((8, 2), np.float32),
        "z": np.ones(3, np.float32),
    }.items():
        with pytest.raises(pn.TypeError) as caught:
            session.set_input(name, values)
        assert isinstance(caught.value, TypeError)
    with pytest.raises(pn.TypeError, match="complex|type that is not taken"):
        session.set_input("x", np.ones((8, 3), np.complex64))
    with pytest.raises(pn.TypeError):
        session.set_input("x", np.array([["a"] * 3] * 8))
    with pytest.raises(pn.TypeError):
        session.set_input("x", object())


def test_labels_out_of_range():
    model = pn.zoo.mlp(4, 3, (8,), 5)
    session = pn.build_session(model.graph, model.loss, optimizer=pn.optim.sgd(0.1))
    session.set_input("x", np.zeros((4, 3), np.float32))
    with pytest.raises(ValueError) as caught:
        session.set_input("labels", [0, 1, 2, 7])
    assert isinstance(caught.value, pn.ValueError) and "7" in str(caught.value)


def test_missing_inputs_are_listed(regression):
    g, loss = regression
    session = pn.build_session(g, loss, optimizer=pn.optim.sgd(0.1))
    with pytest.raises(pn.TypeError, match="'x'.*'y'"):
        session.step()


def test_arrays_that_are_not_contiguous_are_read_as_they_are(session):
    whole = np.arange(48, dtype=np.float32).reshape(8, 6)
    session.set_input("x", whole[:, ::2])
    first = session.step()
    session.load_weights(session.weights())
    assert np.isfinite(first)


def test_arrays_to_write_to(session):
    session.step()
    good = np.empty((1, 3), np.float32)
    assert session.parameter("fc.weight", out=good) is good
    np.testing.assert_array_equal(good, session.parameter("fc.weight"))
    fixed = np.empty((1, 3), np.float32)
    fixed.setflags(write=False)
    for out in (fixed, np.empty((2, 3), np.float32), np.empty((1, 3), np.float64),
                np.empty((1, 6), np.float32)[:, ::2], [0.0] * 3):
        with pytest.raises(pn.TypeError):
            session.parameter("fc.weight", out=out)


def test_a_closed_session(session):
    session.close()
    session.close()
    for use in (session.step, lambda: session.parameter("fc.weight"), lambda: session.loss,
                lambda: session.set_input("x", np.ones((8, 3), np.float32))):
        with pytest.raises(pn.ClosedError, match="was closed"):
            use()
    assert repr(session) == "Session(closed)"


def test_what_computes_cannot_be_pickled(session, regression):
    import pickle

    g, loss = regression
    trainer = pn.Trainer("mlp", 4, optimizer=pn.optim.sgd(0.1))
    for value, instead in ((session, "safetensors"), (trainer, "save_model"), (pn.compile(g, loss), "load_plan"), (loss, "graph")):
        with pytest.raises(pn.TypeError, match=instead):
            pickle.dumps(value)
