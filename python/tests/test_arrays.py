"""Arrays of all kinds: how they lie, whose they are, and what their elements are."""

import numpy as np
import pytest

import pantala as pn


def whole(shape=(4, 6)):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


@pytest.fixture
def twice():
    """Doubles its input of 4 x 3."""
    g = pn.Graph()
    g.output("y", g.input("x", (4, 3)) * 2)
    return pn.build_inference_session(g, threads=1)


class Foreign:
    """An array of another library, which speaks DLPack alone."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def read_only(array):
    array.setflags(write=False)
    return array


LYING = {
    "every other column": whole()[:, ::2],
    "transposed": whole((3, 4)).T,
    "column by column": np.asfortranarray(whole((4, 3))),
    "backwards": whole((4, 3))[::-1, ::-1],
    "one row for all": np.broadcast_to(whole((1, 3)), (4, 3)),
    "not writable": read_only(whole((4, 3))),
    "of the other byte order": whole((4, 3)).astype(">f4"),
    "not aligned": np.frombuffer(b"\0" + whole((4, 3)).tobytes(), np.uint8)[1:].view(np.float32).reshape(4, 3),
    "in half precision": whole((4, 3)).astype(np.float16),
    "a subclass": np.ma.masked_array(whole((4, 3))).data.view(np.matrix),
    "of another library": Foreign(whole((4, 3))),
}


@pytest.mark.parametrize("how", LYING)
def test_inputs_are_read_as_they_lie(how, twice):
    array = LYING[how]
    expected = 2 * np.asarray(array._array if isinstance(array, Foreign) else array, np.float32)
    np.testing.assert_array_equal(twice.run(x=array)["y"], expected)
    data = pn.data.dataset(array, np.arange(4))
    np.testing.assert_array_equal(next(iter(pn.data.loader(data, 4, shuffle=False)))[0], expected / 2)


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.int64, np.complex64, np.uint64, "U3", object, "M8[s]"])
def test_elements_of_another_type_are_no_floats(dtype, twice):
    with pytest.raises(pn.TypeError, match="'x'"):
        twice.set_input("x", np.zeros((4, 3)).astype(dtype))


@pytest.mark.parametrize("dtype", [np.uint8, np.bool_])
def test_what_floats_hold_exactly_is_taken(dtype, twice):
    array = np.array([[0, 1, 1]] * 4).astype(dtype)
    np.testing.assert_array_equal(twice.run(x=array)["y"], 2 * array.astype(np.float32))


def of_type(dtype):
    g = pn.Graph()
    g.output("y", g.input("x", (2,), dtype).astype("f64"))
    return pn.build_inference_session(g, threads=1)


NUMBERS = [
    ("f32", [1, 2.5]), ("f32", (True, 2)), ("f32", [float("inf"), float("-inf")]), ("f64", [2**60, -1]), ("f16", [0.5, 3]),
    ("i64", [2**62, -3]), ("i32", [np.int64(5), np.uint8(6)]), ("u8", [0, 255]), ("bool", [1, False]),
]


@pytest.mark.parametrize("dtype, given", NUMBERS, ids=repr)
def test_lists_become_the_type_of_the_input(dtype, given):
    np.testing.assert_array_equal(of_type(dtype).run(x=given)["y"], np.array(given, np.float64))


NO_NUMBERS = [
    ("f32", [1, None], "NoneType and int"), ("f32", ["1", "2"], "str"), ("f32", [1, 2j], "complex"), ("f32", [1, 1e300], "1e"),
    ("f16", [1, 1e6], "1000000"), ("i64", [1, 1.5], "float64"), ("i64", [1, float("nan")], "float64"), ("i64", [1, 2**70], "int"),
    ("i32", [1, 2**40], "1099511627776"), ("u8", [300, 1], "300"), ("u8", [-1, 1], "-1"), ("bool", [0, 2], "2"), ("f32", [[1, 2], [1]], ""),
]


@pytest.mark.parametrize("dtype, given, told", NO_NUMBERS, ids=repr)
def test_lists_of_what_the_type_does_not_have(dtype, given, told):
    with pytest.raises((pn.TypeError, pn.ValueError)) as caught:
        of_type(dtype).set_input("x", given)
    assert told in str(caught.value) and caught.value.place.startswith("test_arrays.py"), caught.value


def test_masked_arrays(twice):
    array = np.ma.masked_array(whole((4, 3)), mask=whole((4, 3)) > 5)
    with pytest.raises(pn.TypeError, match="filled"):
        twice.set_input("x", array)
    np.testing.assert_array_equal(twice.run(x=array.filled(0))["y"], 2 * array.filled(0))


def test_complex_numbers_are_no_operands():
    x = pn.Graph().input("x", 3)
    for number in (1j, np.complex64(1 + 2j)):
        with pytest.raises(pn.TypeError):
            x * number
        with pytest.raises(pn.TypeError):
            pn.Graph().constant(number)


@pytest.mark.parametrize("value", [2**53 + 1, np.int64(2**53 + 1), 10**400])
def test_whole_numbers_that_are_no_doubles_are_not_rounded(value):
    x = pn.Graph().input("x", 3, pn.i64)
    for call in (lambda: x + value, lambda: pn.Graph().constant(value, dtype=pn.i64), lambda: pn.init.initializer(value)):
        with pytest.raises(pn.ValueError, match="double"):
            call()


def test_tensors_of_torch_with_a_sign_that_is_not_written_yet(twice):
    torch = pytest.importorskip("torch")
    x = torch.complex(torch.ones(4, 3), torch.ones(4, 3)).conj().imag
    assert x.is_neg()
    np.testing.assert_array_equal(twice.run(x=x)["y"], np.full((4, 3), -2, np.float32))


@pytest.mark.parametrize("shape", [(3, 4), (4, 3, 1), (12,), (), (4, 0), (0, 3)])
def test_arrays_of_another_shape(shape, twice):
    with pytest.raises(pn.TypeError, match="f32.4,3."):
        twice.set_input("x", np.zeros(shape, np.float32))


def test_single_numbers_and_empty_arrays():
    g = pn.Graph()
    g.output("n", g.input("n", ()) + 1)
    g.output("e", g.input("e", (0, 3)) + 1)
    session = pn.build_inference_session(g)
    for number in (2.0, 2, np.float32(2), np.array(2, np.float32), np.array(2.0, ">f4")):
        made = session.run(n=number, e=np.zeros((0, 3), np.float32))
        assert made["n"] == 3 and made["n"].shape == () and made["e"].shape == (0, 3)
    assert session.output_view("n").shape == () and session.output_view("e").size == 0


def test_integers_of_all_widths():
    g = pn.Graph()
    for name in ("i32", "i64", "u8", "bool"):
        g.output(name, g.input(f"in_{name}", 3, name).astype("f32"))
    session = pn.build_inference_session(g)
    given = {"in_i32": np.array([-1, 2, 3], np.int16), "in_i64": np.array([-1, 2, 3], ">i8"),
             "in_u8": np.array([1, 2, 255], np.uint8), "in_bool": np.array([True, False, True])}
    made = session.run(given)
    for name in ("i32", "i64", "u8", "bool"):
        np.testing.assert_array_equal(made[name], given[f"in_{name}"].astype(np.float32))


OUTS = {
    "not writable": read_only(np.zeros((4, 3), np.float32)),
    "of another shape": np.zeros((3, 4), np.float32),
    "of another type": np.zeros((4, 3)),
    "not row by row": np.zeros((4, 6), np.float32)[:, ::2],
    "column by column": np.zeros((4, 3), np.float32, order="F"),
    "of the other byte order": np.zeros((4, 3), ">f4"),
    "no array": [[0.0] * 3] * 4,
}


@pytest.mark.parametrize("how", OUTS)
def test_arrays_that_cannot_be_written_to(how, twice):
    twice.run(x=whole((4, 3)))
    with pytest.raises(pn.TypeError):
        twice.output("y", out=OUTS[how])


def test_arrays_outlive_sessions_and_are_their_own(twice):
    made = twice.run(x=whole((4, 3)))["y"]
    again = twice.output("y")
    again[:] = 7
    twice.close()
    assert made.flags.owndata is False and made.flags.writeable
    np.testing.assert_array_equal(made, 2 * whole((4, 3)))


def test_predictions_in_parts_are_those_of_the_whole():
    trainer = pn.Trainer(lambda batch: pn.zoo.mlp(batch, 3, (8,), 2), 4, optimizer=pn.optim.sgd(0.1))
    x = np.random.default_rng(0).normal(size=(150, 3)).astype(np.float32)
    made = trainer.predict(x)
    np.testing.assert_array_equal(made[:64], trainer.predict(x[:64]))
    np.testing.assert_array_equal(made[128:], trainer.predict(x[128:]))
    assert made.shape == (150, 2)
