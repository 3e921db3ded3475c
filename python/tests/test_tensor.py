"""Tensors behave as NumPy's arrays do: operators, broadcasting, slicing."""

import numpy as np
import pytest

import pantala as pn

A = np.arange(2 * 3 * 4, dtype=np.float32).reshape(2, 3, 4) / 7 - 1


def value(make, *arrays):
    """The number of what `make` builds from inputs with these values."""
    g = pn.Graph()
    tensors = [g.input(f"x{k}", a.shape, pn.dtype(a.dtype)) for k, a in enumerate(arrays)]
    inputs = {f"x{k}": a for k, a in enumerate(arrays)}
    return pn.evaluate(g, make(*tensors), inputs)[0]


INDICES = [
    0, -1, (0, 1), (slice(None), 2), (Ellipsis, 0), (Ellipsis, slice(1, 3)),
    (slice(None), slice(None, None, 2)), (slice(None), slice(None, None, -1)),
    (slice(None), slice(2, None, -2)), (0, slice(1, 1)), None, (None, 0, None), (1, Ellipsis, None),
    (slice(None), [0, 2, 2]), (slice(None), np.array([-1, 0])), (0, [1, 0]), (slice(-2, None),),
]


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_slicing_is_numpys(index):
    np.testing.assert_array_equal(value(lambda x: x[index], A), A[index])


def test_a_tensor_as_index_takes():
    g = pn.Graph()
    x, index = g.input("x", (5, 3)), g.input("index", 2, pn.i64)
    got = pn.evaluate(g, x[index], {"x": np.arange(15, dtype=np.float32).reshape(5, 3), "index": [4, 0]})
    np.testing.assert_array_equal(got[0][:, 0], [12, 0])


@pytest.mark.parametrize("index", [3, (0, 0, 0, 0), (Ellipsis, Ellipsis), "a", np.array([True, False]), [0.5]],
                         ids=repr)
def test_bad_indices_are_typed_errors(index):
    x = pn.Graph().input("x", (2, 3, 4))
    with pytest.raises(pn.Error):
        x[index]


@pytest.mark.parametrize("operate", [
    lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / b,
    lambda a, b: a < b, lambda a, b: a >= b, lambda a, b: a == b, lambda a, b: a != b,
    lambda a, b: 2 + a, lambda a, b: 2 - a, lambda a, b: 3 * a, lambda a, b: 2 / b, lambda a, b: -a,
    lambda a, b: a**2, lambda a, b: abs(a), lambda a, b: np.float32(2) * b, lambda a, b: b @ b.T,
])
def test_operators_broadcast_as_numpy(operate):
    b = np.linspace(1, 2, 12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_allclose(value(operate, A, b), operate(A, b), rtol=1e-6)


def test_arrays_beside_tensors_are_constants():
    row = np.array([1, 2, 3, 4], np.float32)
    np.testing.assert_allclose(value(lambda x: row * x + row, A), row * A + row, rtol=1e-6)


def test_logic_of_bools():
    np.testing.assert_array_equal(value(lambda x: ~((x > 0) & (x < 1)) | (x == 2), A),
                                  ~((A > 0) & (A < 1)) | (A == 2))


def test_methods():
    np.testing.assert_allclose(value(lambda x: x.sum((0, 2)), A), A.sum((0, 2)), rtol=1e-6)
    np.testing.assert_allclose(value(lambda x: x.mean(-1, keepdims=True), A), A.mean(-1, keepdims=True), rtol=1e-6)
    np.testing.assert_allclose(value(lambda x: x.max(1), A), A.max(1))
    np.testing.assert_array_equal(value(lambda x: x.reshape(6, -1).T, A), A.reshape(6, -1).T)
    np.testing.assert_array_equal(value(lambda x: x.argmax(), A), A.argmax(-1))
    np.testing.assert_array_equal(value(lambda x: x.astype("i32"), A), A.astype(np.int32))


def test_what_a_tensor_is():
    x = pn.Graph().input("x", (2, 3), np.float64)
    assert (x.shape, x.dtype, x.ndim, x.size, len(x)) == ((2, 3), pn.f64, 2, 6, 2)
    assert repr(x) == "Tensor(f64[2,3])"
    assert [row.shape for row in x] == [(3,), (3,)]
    assert x.same(x) and not x.same(x + 1)
    with pytest.raises(TypeError, match="no truth value"):
        bool(x)
    with pytest.raises(TypeError, match="until a session runs"):
        np.asarray(x)


def test_graphs_print_parse_and_pickle():
    import pickle

    g = pn.Graph()
    g.output("y", pn.softmax(g.input("x", (2, 3))))
    assert pn.parse_graph(g.text()).text() == g.text()
    assert pickle.loads(pickle.dumps(g)).text() == g.text()


GRADIENT_OPS = [
    ("relu", {}), ("gelu", {}), ("gelu_tanh", {}), ("silu", {}), ("sigmoid", {}), ("tanh", {}),
    ("exp", {}), ("sin", {}), ("cos", {}), ("erf", {}), ("softplus", {}), ("mish", {}), ("elu", {}),
    ("softmax", {}), ("log_softmax", {}), ("layer_norm", {}), ("rms_norm", {}), ("logsumexp", {}),
    ("cumsum", {}), ("square", {}), ("var", {}), ("hardswish", {}),
]


@pytest.mark.parametrize("op, options", GRADIENT_OPS, ids=lambda v: v if isinstance(v, str) else "")
def test_gradients_are_central_differences(op, options):
    rng = np.random.default_rng(3)
    start = rng.uniform(-1.5, 1.5, (3, 4))
    g = pn.Graph()
    x = g.input("x", (3, 4), pn.f64)
    y = getattr(pn, op)(x, **options)
    weights = rng.uniform(-1, 1, y.shape)
    loss = (y * g.constant(weights)).sum()
    made = pn.differentiate(g, loss, [x])
    got = pn.build_inference_session(made.graph.with_outputs({"d": made.gradients[0]})).run(x=start)["d"]

    def at(values):
        return float(pn.evaluate(g, loss, {"x": values})[0])

    step = 1e-5
    for k in np.ndindex(3, 4):
        up, down = start.copy(), start.copy()
        up[k] += step
        down[k] -= step
        assert got[k] == pytest.approx((at(up) - at(down)) / (2 * step), rel=1e-6, abs=1e-8)
