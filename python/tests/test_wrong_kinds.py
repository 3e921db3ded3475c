"""Arguments of another kind, names that are none, one argument too many: errors of Pantala at the user's
line, whoever notices. Exceptions of the user's own code stay what they are."""

import inspect
import pickle

import numpy as np
import pytest

import pantala as pn

g = pn.Graph()
x = g.input("x", (4, 3))
loss = pn.mse_loss(pn.nn.linear("fc", x, 1), g.input("y", (4, 1)))
plan = pn.compile(g, loss, optimizer=pn.optim.sgd(0.1), threads=1)
s = pn.Session(plan)
w = s.weights()
t = pn.Trainer("mlp", 4, optimizer=pn.optim.sgd(0.1))
d = pn.data.dataset(np.zeros((4, 3), np.float32), np.zeros(4, np.int64))


def delete(weights):
    del weights["none"]


def put(weights):
    weights["a"] = object()


def rate(session):
    session.learning_rate = "a"


WRONG = [
    lambda: s.set_input(3, np.zeros(3)),
    lambda: s.set_input("x", None),
    lambda: s.step(5),
    lambda: s.step({1:2}),
    lambda: s.step(np.zeros(1)),
    lambda: s.step([]),
    lambda: s.step(0),
    lambda: s.set_input("x", [[1, 2, 3], [1]]),
    lambda: s.output(3),
    lambda: s.output("nothing"),
    lambda: s.parameter(None),
    lambda: s.set_scalar("optim.lr", "a"),
    lambda: s.set_scalar(3, 1),
    lambda: s.set_parameter("fc.weight", None),
    lambda: s.set_adam("a", 1, 1, 1),
    lambda: s.save(3),
    lambda: s.load(None),
    lambda: s.load_weights(3),
    lambda: s.load_weights({"a":"b"}),
    lambda: s.attach("a", "b"),
    lambda: s.plan("none"),
    lambda: s.gradient("fc.weight"),
    lambda: s.observed("fc"),
    lambda: s.view("none"),
    lambda: s.set_timing("a"),
    lambda: s.scalar("none"),
    lambda: pn.Session("a"),
    lambda: pn.Session(plan, threads="a"),
    lambda: pn.Session(plan, seed=-1),
    lambda: pn.compile("a"),
    lambda: pn.compile(g, "a"),
    lambda: pn.compile(g, loss, optimizer="adam"),
    lambda: pn.compile(g, loss, groups=["a"]),
    lambda: pn.compile(g, loss, observe=["a"]),
    lambda: pn.compile(g, loss, threads="two"),
    lambda: pn.build_session("a", loss),
    lambda: pn.build_session(g, loss, optimizer=3),
    lambda: pn.build_inference_session(3),
    lambda: pn.load_plan(3),
    lambda: pn.Trainer(3),
    lambda: pn.Trainer("mlp", "a"),
    lambda: pn.Trainer("mlp", 4, optimizer="sgd"),
    lambda: pn.Trainer("mlp", 4, rate_schedule="cosine"),
    lambda: pn.Trainer("mlp", 4, plateau=3),
    lambda: pn.Trainer("mlp", 4, seed="a"),
    lambda: t.fit(d, epochs="a"),
    lambda: t.fit(d, callbacks=[3]),
    lambda: t.fit(d, callbacks=3),
    lambda: t.fit(d, callbacks=print),
    lambda: t.fit(d, early_stopping=3),
    lambda: t.fit(d, checkpoints=3),
    lambda: t.fit(d, folder=3),
    lambda: t.fit(d, transforms=[3]),
    lambda: t.fit(None),
    lambda: t.evaluate(3),
    lambda: t.predict("a"),
    lambda: t.step(1),
    lambda: t.resume(3),
    lambda: t.load_checkpoint("/nowhere"),
    lambda: w["none"],
    lambda: w[3],
    lambda: w.rename("none", "b"),
    lambda: w.type("none"),
    lambda: pn.Weights.open(3),
    lambda: pn.Weights(3),
    lambda: pn.load_onnx(3),
    lambda: pn.export_onnx(3, w, "/tmp/x.onnx"),
    lambda: pn.export_onnx(g, 3, "/tmp/x.onnx"),
    lambda: pn.data.dataset(3, 4),
    lambda: pn.data.dataset("a", "b"),
    lambda: pn.data.loader(3),
    lambda: pn.data.loader(d, "a"),
    lambda: pn.data.loader(d, transforms=[3]),
    lambda: pn.data.read_csv(3),
    lambda: pn.data.read_csv("/nowhere", like=[3]),
    lambda: pn.data.read_image("/nowhere", "a"),
    lambda: pn.data.read_tokens("/nowhere", sequence="a"),
    lambda: pn.data.write_npy("/nowhere/a.npy", np.zeros(3)),
    lambda: d.select(["a"]),
    lambda: d.slice("a", 1),
    lambda: d.split("a"),
    lambda: pn.optim.adam("a"),
    lambda: pn.optim.adam(betas=3),
    lambda: pn.rates.cosine("a"),
    lambda: pn.rates.cosine(5).lr("a", 1),
    lambda: pn.rates.cosine(5).with_warmup("a"),
    lambda: pn.zoo.lenet("a"),
    lambda: pn.zoo.mlp(hidden=3),
    lambda: pn.zoo.mlp(activation="no"),
    lambda: pn.zoo.model(3),
    lambda: pn.zoo.llama("a"),
    lambda: pn.zoo.llama_config(3),
    lambda: pn.zoo.llama_config("no"),
    lambda: pn.zoo.resized(3),
    lambda: pn.zoo.whisper_training(5),
    lambda: pn.zoo.resnet18(form="a"),
    lambda: pn.zoo.resnet18("a"),
    lambda: pn.Generator("a"),
    lambda: pn.Sampler(temperature="a"),
    lambda: pn.nn.linear(3, x, 4),
    lambda: pn.nn.linear("a", "b", 4),
    lambda: pn.nn.linear("a", x, "b"),
    lambda: pn.nn.conv2d("c", x, "a", 3),
    lambda: pn.nn.lstm("l", x, "a"),
    lambda: g.input(3, 4),
    lambda: g.input("z", 4, dtype=object()),
    lambda: g.parameter("p", 4, init="ones"),
    lambda: g.parameter("p", 4, init=object()),
    lambda: g.constant("a"),
    lambda: g.constant(object()),
    lambda: g.output(3),
    lambda: g.output("nope"),
    lambda: g.update(3, 4),
    lambda: g.leaf(3),
    lambda: g["none"],
    lambda: g.find(3),
    lambda: g.with_outputs({"a":3}),
    lambda: g.scalar("s", "a"),
    lambda: g.has(3),
    lambda: pn.parse_graph(3),
    lambda: pn.verify(3),
    lambda: pn.differentiate(g, loss, 3),
    lambda: pn.differentiate(3, loss, [x]),
    lambda: pn.evaluate(3, x),
    lambda: pn.evaluate(g, [x], {"x":object()}),
    lambda: x[0.5],
    lambda: x["a"],
    lambda: x[object()],
    lambda: x[9],
    lambda: x+object(),
    lambda: x@3,
    lambda: x.reshape("a"),
    lambda: x.astype("nope"),
    lambda: x.sum(axis="a"),
    lambda: pn.concat(3),
    lambda: pn.concat([3]),
    lambda: pn.softmax(x, axis="a"),
    lambda: pn.clamp(x, "a"),
    lambda: pn.init.normal("a"),
    lambda: pn.init.from_data("a"),
    lambda: pn.run.train(3),
    lambda: pn.run.train(values=3),
    lambda: pn.run.train(values=["epochs=a"]),
    lambda: pn.run.sweep(keys=3),
    lambda: pn.run.compare(3),
    lambda: pn.run.compare(["/nowhere"]),
    lambda: pn.run.draw_plots(3),
    lambda: pn.inspect(3),
    lambda: pn.explain(3),
    lambda: pn.set_log_level("a"),
    lambda: pn.set_log_level(3),
    lambda: pn.dtype(3),
    lambda: delete(w),
    lambda: put(w),
    lambda: rate(s),
    lambda: pn.softmax(x, 1, 2),
    lambda: pn.softmax(x, dimension=1),
    lambda: pn.EarlyStopping(patients=3),
]


@pytest.mark.parametrize("call", WRONG, ids=lambda call: inspect.getsource(call).strip().removeprefix("lambda: ")[:60])
def test_is_an_error_of_ours_at_the_users_line(call):
    with pytest.raises(pn.Error) as caught:
        call()
    line = call.__code__.co_firstlineno
    assert caught.value.place.startswith("test_wrong_kinds.py:")
    assert caught.value.place in str(caught.value)
    assert caught.value.place == f"test_wrong_kinds.py:{line}" or call.__code__.co_names[0] in ("delete", "put", "rate")
    assert isinstance(caught.value, (TypeError, ValueError, LookupError, OSError))
    told = str(caught.value)
    assert "_core" not in told and "incompatible function" not in told and "has no attribute '_" not in told


def test_what_would_fit_is_told():
    with pytest.raises(pn.TypeError) as caught:
        s.set_scalar("optim.lr", "a")
    assert "Session.set_scalar(name: str, value: float): the arguments (str, str) do not fit" in str(caught.value)


def test_weights_are_asked_like_a_dict():
    assert w.get("none", 3) == 3 and "none" not in w
    with pytest.raises(KeyError, match="no weights 'none'"):
        w["none"]


def test_exceptions_of_the_users_code_stay_what_they_are():
    def data():
        yield {}["no such thing"]

    def model(batch):
        return batch.missing

    class Watch(pn.Callback):
        def on_step(self, metrics):
            return len(3)

    for call, kind in [
        (lambda: t.fit(data, progress=False), KeyError),
        (lambda: pn.Trainer(model, 4), AttributeError),
        (lambda: pn.Trainer(lambda n: pn.zoo.mlp(n, 3, (4,), 2), 4, optimizer=pn.optim.sgd(0.1)).fit(
            d, callbacks=[Watch()], progress=False), TypeError),
    ]:
        with pytest.raises(kind) as caught:
            call()
        assert not isinstance(caught.value, pn.Error)


def test_signatures_documentation_and_pickles_are_those_of_the_functions():
    assert list(inspect.signature(pn.softmax).parameters) == ["x", "axis"]
    assert pn.softmax.__doc__ and pn.softmax.__name__ == "softmax" and pn.softmax.__module__ == "pantala._ops"
    assert pn.softmax is pn.ops.softmax
    assert pickle.loads(pickle.dumps(pn.softmax)) is pn.softmax
