"""Trainers: data of all kinds, callbacks, interrupts, checkpoints, histories."""

import os
import pickle
import signal
import threading
import traceback

import numpy as np
import pytest

import pantala as pn
from conftest import small_model


def trainer_of(**options):
    options.setdefault("optimizer", pn.optim.adam(0.02))
    return pn.Trainer(small_model, 16, **options)


def test_fit_learns_and_tells(classes):
    trainer = trainer_of()
    run = trainer.fit(classes, epochs=15, validation=classes, progress=False)
    assert run.end == "finished"
    assert run.history["loss"][-1] < 0.5 * run.history["loss"][0]
    assert run.history["val_accuracy"][-1] > 0.9
    assert len(run.history.step_loss) == 15 * 6 and len(run.history["epoch"]) == 15
    assert trainer.evaluate(classes)["accuracy"] == run.history["val_accuracy"][-1]
    predicted = trainer.predict(classes[0])
    assert predicted.shape == (96, 3)
    assert (predicted.argmax(1) == classes[1]).mean() == pytest.approx(run.history["val_accuracy"][-1])


def batches(classes, size=16):
    x, y = classes
    for k in range(0, len(x), size):
        yield x[k : k + size], y[k : k + size]


@pytest.mark.parametrize("kind", ["arrays", "dataset", "loader", "list", "function", "of_epoch", "dicts"])
def test_data_of_every_kind_gives_the_same_losses(classes, kind):
    sources = {
        "arrays": classes,
        "dataset": pn.data.dataset(*classes),
        "loader": pn.data.loader(pn.data.dataset(*classes), 16, shuffle=False),
        "list": list(batches(classes)),
        "function": lambda: batches(classes),
        "of_epoch": lambda epoch: batches(classes),
        "dicts": [{"x": x, "labels": y} for x, y in batches(classes)],
    }
    run = trainer_of().fit(sources[kind], epochs=2, shuffle=False, progress=False)
    expected = trainer_of().fit(list(batches(classes)), epochs=2, progress=False)
    np.testing.assert_array_equal(run.history.step_loss, expected.history.step_loss)


def test_a_short_last_batch(classes):
    x, y = classes
    run = trainer_of().fit((x[:40], y[:40]), epochs=2, progress=False)
    assert run.history["steps"].tolist() == [3, 3]


def test_a_generator_gives_one_pass(classes):
    with pytest.raises(pn.TypeError, match="function that makes it"):
        trainer_of().fit(batches(classes), epochs=2, progress=False)


def test_data_loaders_of_torch(classes):
    torch = pytest.importorskip("torch")
    data = torch.utils.data.TensorDataset(*map(torch.from_numpy, classes))
    loader = torch.utils.data.DataLoader(data, 16, num_workers=1)
    run = trainer_of().fit(loader, epochs=2, progress=False)
    expected = trainer_of().fit(list(batches(classes)), epochs=2, progress=False)
    np.testing.assert_array_equal(run.history.step_loss, expected.history.step_loss)


def test_the_arrays_of_a_data_set_are_not_copied():
    import tracemalloc

    x = np.zeros((1000, 1000), np.float32)
    tracemalloc.start()
    kept = pn.data.dataset(x, np.zeros(1000, np.int64))
    x[3] = 5
    batch = next(iter(pn.data.loader(kept, 8, shuffle=False, threads=0)))
    assert batch[0][3, 0] == 5 and tracemalloc.get_traced_memory()[1] < 1e6
    tracemalloc.stop()


@pytest.mark.parametrize("bad", [
    (np.zeros((4, 3), np.float32), np.zeros(3, np.int64)),
    (np.zeros((4, 5), np.float32), np.zeros(4, np.int64)),
    [np.zeros((4, 3), np.float32)],
    [(1, 2, 3)],
    7,
])
def test_bad_data_are_typed_errors(bad):
    with pytest.raises(pn.Error):
        trainer_of().fit(bad, progress=False)


def test_an_error_of_the_data_reaches_the_user(classes):
    def broken():
        yield from list(batches(classes))[:2]
        raise KeyError("no such file")

    with pytest.raises(KeyError, match="no such file") as caught:
        trainer_of().fit(broken, progress=False)
    assert "broken" in "".join(traceback.format_tb(caught.value.__traceback__))


# --- callbacks


def test_callbacks_see_and_change(classes):
    seen = []

    class Watch(pn.Callback):
        def on_start(self):
            seen.append("start")

        def on_step(self, metrics):
            seen.append(metrics.loss)
            assert self.trainer.session.loss == metrics.loss

        def on_epoch(self, stats):
            seen.append(("epoch", stats.epoch, self.trainer.last_evaluation is not None))
            self.trainer.session.learning_rate = 0

    trainer = trainer_of()
    run = trainer.fit(classes, epochs=3, validation=classes, callbacks=[Watch()], progress=False)
    assert seen[0] == "start" and ("epoch", 2, True) in seen
    assert run.history["val_loss"][1] == run.history["val_loss"][2]
    assert trainer.session.learning_rate == 0


def test_callbacks_stop_the_run(classes, tmp_path):
    steps = []
    trainer = trainer_of()

    def watch(metrics):
        steps.append(metrics)
        if len(steps) == 8:
            trainer.stop()

    run = trainer.fit(classes, epochs=10, callbacks=[watch], checkpoints=tmp_path, progress=False)
    assert run.end == "interrupted" and len(steps) == 8
    assert "step-000000008" in os.listdir(tmp_path)
    assert trainer.fit(classes, epochs=2, progress=False).end == "finished"
    assert len(steps) == 8


def test_an_exception_ends_the_run_with_its_checkpoint(classes, tmp_path):
    def explode(metrics):
        if metrics.step == 3:
            raise ZeroDivisionError("of the user")

    trainer = trainer_of()
    with pytest.raises(ZeroDivisionError, match="of the user") as caught:
        trainer.fit(classes, epochs=5, callbacks=[explode], checkpoints=tmp_path, progress=False)
    assert "explode" in "".join(traceback.format_tb(caught.value.__traceback__))
    assert os.listdir(tmp_path) == ["step-000000004"]
    other = trainer_of()
    assert other.resume(tmp_path).endswith("step-000000004")
    assert other.state["global_steps"] == 4


def press_ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupt_in_a_callback_saves_and_returns(classes, tmp_path):
    trainer = trainer_of()

    def press(metrics):
        if metrics.epoch == 1:
            press_ctrl_c()

    run = trainer.fit(classes, epochs=1000, callbacks=[press], checkpoints=tmp_path, progress=False)
    assert run.end == "interrupted" and "step-000000007" in os.listdir(tmp_path)


def test_an_interrupt_in_a_step_saves_and_returns(classes, tmp_path):
    trainer = trainer_of()
    timer = threading.Timer(0.3, press_ctrl_c)
    timer.start()
    data = pn.data.loader(pn.data.dataset(*classes), 16)
    run = trainer.fit(data, epochs=10**6, checkpoints=tmp_path, progress=False)
    assert run.end == "interrupted" and os.listdir(tmp_path)


def test_an_interrupt_in_the_users_data_saves_and_returns(classes, tmp_path):
    pressed = []

    def data():
        for k, batch in enumerate(batches(classes)):
            if k == 3 and not pressed:
                pressed.append(k)
                press_ctrl_c()
            yield batch

    trainer = trainer_of()
    run = trainer.fit(data, epochs=2, checkpoints=tmp_path, progress=False)
    assert run.end == "interrupted" and os.listdir(tmp_path) == ["step-000000004"]
    assert trainer.fit(data, epochs=2, progress=False).end == "finished"
    assert trainer.state["global_steps"] == 12


def test_an_interrupted_run_goes_on_with_the_same_bits(classes, tmp_path):
    def data():
        return pn.data.loader(pn.data.dataset(*classes), 16, seed=3)

    whole = trainer_of()
    whole.fit(data(), epochs=4, progress=False)
    first = trainer_of()
    first.fit(data(), epochs=4, max_steps=9, checkpoints=tmp_path, progress=False)
    second = trainer_of()
    second.resume(tmp_path)
    second.fit(data(), epochs=4, progress=False)
    for name in whole.session.parameters:
        np.testing.assert_array_equal(whole.session.parameter(name), second.session.parameter(name))


def test_early_stopping_and_schedules(classes):
    trainer = trainer_of(rate_schedule=pn.rates.cosine(T_max=60, warmup_steps=6))
    stop = pn.EarlyStopping(patience=1, min_delta=100)
    run = trainer.fit(classes, epochs=20, validation=classes, early_stopping=stop, progress=False)
    assert run.end == "stopped_early" and run.restored_epoch == 0


def test_steps_by_hand_and_accumulation(classes):
    trainer = trainer_of(accumulation_steps=2)
    x, y = classes
    assert trainer.step(x[:16], y[:16]) is None
    assert trainer.step(x[16:32], y[16:32]) > 0
    with pytest.raises(pn.TypeError, match="a batch is"):
        trainer.step(x[:16])


def test_numbers_that_are_not_finite(classes):
    x, y = classes
    bad = np.full((16, 3), np.nan, np.float32)
    trainer = trainer_of()
    with pytest.raises(pn.DivergenceError):
        trainer.fit([(bad, y[:16])], progress=False)
    assert np.isfinite(trainer.session.parameter("fc1.weight")).all()


def test_another_thread_may_not_use_a_trainer_at_work(classes):
    trainer = trainer_of()
    errors = []

    def look(metrics):
        if errors:
            trainer.stop()
            return
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    def other():
        try:
            trainer.evaluate(classes)
        except pn.ThreadError as error:
            errors.append(error)

    trainer.fit(classes, callbacks=[look], progress=False)
    assert errors


@pytest.mark.parametrize("again", [
    lambda trainer, data: trainer.fit(data, progress=False), lambda trainer, data: trainer.step(data[0][:16], data[1][:16]),
    lambda trainer, data: trainer.load_checkpoint("anywhere"), lambda trainer, data: trainer.restore_best(),
], ids=["fit", "step", "load_checkpoint", "restore_best"])
@pytest.mark.parametrize("from_thread", [False, True])
def test_a_run_in_the_midst_of_a_run_is_an_error(classes, again, from_thread):
    trainer, seen, errors = trainer_of(), [], []

    def inner():
        try:
            again(trainer, classes)
        except pn.Error as error:
            errors.append(error)

    def look(metrics):
        seen.append(metrics)
        if from_thread:
            thread = threading.Thread(target=inner)
            thread.start()
            thread.join()
        else:
            inner()

    run = trainer.fit(classes, callbacks=[look], progress=False)
    assert run.end == "finished" and len(run.history["loss"]) == 1
    assert len(errors) == len(seen) == trainer.state["global_steps"] == 6
    assert all(isinstance(error, pn.ThreadError if from_thread else pn.TypeError) for error in errors)
    assert trainer.step(classes[0][:16], classes[1][:16]) > 0


# --- what is left behind


def test_histories_and_options_can_be_pickled(classes):
    run = trainer_of().fit(classes, epochs=2, progress=False)
    again = pickle.loads(pickle.dumps(run))
    np.testing.assert_array_equal(again.history["loss"], run.history["loss"])
    np.testing.assert_array_equal(again.history.step_loss, run.history.step_loss)
    for option in (pn.optim.adamw(3e-4, betas=(0.8, 0.9)), pn.rates.one_cycle(max_lr=0.1, total_steps=9),
                   pn.rates.plateau(patience=3), pn.EarlyStopping(patience=2), pn.Checkpoints("a"),
                   pn.ParameterGroup("fc*", frozen=True), pn.zoo.LlamaConfig(layers=2)):
        assert pickle.loads(pickle.dumps(option)) == option


def test_a_run_folder(classes, tmp_path):
    folder = tmp_path / "run"
    run = trainer_of().fit(classes, epochs=2, folder=folder, progress=False)
    assert run.end == "finished"
    assert {"metrics.jsonl", "model.safetensors", "checkpoints"} <= set(os.listdir(folder))
    again = trainer_of().fit(classes, epochs=3, folder=folder, progress=False)
    assert again.history["epoch"].tolist() == [0, 1, 2]


def test_charts_tables_and_frames(classes):
    trainer = trainer_of()
    run = trainer.fit(classes, epochs=2, validation=classes, progress=False)
    assert run.plot()._repr_svg_().startswith("<svg") and "<svg" in run.plot("accuracy").svg
    assert "<table>" in run._repr_html_()
    assert "<table>" in trainer.session.report._repr_html_()
    explained = pn.explain(trainer)
    assert explained["kernels"].rows and "<table>" in explained._repr_html_()
    assert ("fc1.weight", "f32", (16, 3)) in pn.inspect(trainer)["tensors"].rows
    pandas = pytest.importorskip("pandas")
    assert isinstance(run.history.frame(), pandas.DataFrame)


def test_the_progress_line(classes, capfd):
    trainer_of().fit(classes, epochs=2, validation=classes, progress=True)
    shown = capfd.readouterr().err
    assert "epoch" in shown and "loss" in shown


def test_models_by_name(classes):
    trainer = pn.Trainer("lenet", 8, optimizer=pn.optim.adam())
    x = np.random.default_rng(0).integers(0, 255, (16, 1, 28, 28)).astype(np.uint8)
    y = np.arange(16) % 10
    run = trainer.fit((x, y), transforms=[pn.data.Scale()], progress=False)
    assert run.history["steps"].tolist() == [2]


def test_a_trainer_of_a_plan(classes):
    model = small_model(16)
    plan = pn.compile(model.graph, model.loss, optimizer=pn.optim.adam(0.02))
    run = pn.Trainer(plan, 16, optimizer=pn.optim.adam(0.02)).fit(classes, epochs=3, progress=False)
    assert run.history["loss"][-1] < run.history["loss"][0]


def test_trainers_leave_nothing(classes):
    import gc
    import weakref

    trainer = trainer_of()
    trainer.fit(classes, callbacks=[lambda metrics: None], progress=False)
    data = lambda: batches(classes)  # noqa: E731: something that can be watched
    trainer.fit(data, epochs=2, progress=False)
    watched = [weakref.ref(trainer), weakref.ref(data)]
    del trainer, data
    gc.collect()
    assert [ref() for ref in watched] == [None, None]


def test_the_batch_that_diverged_is_kept(classes):
    x, y = classes
    broken = x.copy()
    broken[40, 1] = np.inf
    trainer = trainer_of()
    assert trainer.failed_batch is None
    with pytest.raises(pn.DivergenceError):
        trainer.fit(list(batches((broken, y))), progress=False)
    np.testing.assert_array_equal(trainer.failed_batch["x"], broken[32:48])
    np.testing.assert_array_equal(trainer.failed_batch["labels"], y[32:48])
    assert trainer.step(x[:16], y[:16]) > 0
