"""Sessions: values, views, memory, threads, processes."""

import gc
import multiprocessing
import sys
import threading
import time

import numpy as np
import pytest

import pantala as pn


def test_a_step_is_that_of_numpy(session):
    weight, bias = session.parameter("fc.weight"), session.parameter("fc.bias")
    prediction = np.ones((8, 3), np.float32) @ weight.T + bias
    assert session.step() == pytest.approx(float((prediction**2).mean()), rel=1e-6)
    gradient = 2 * prediction.mean()
    np.testing.assert_allclose(session.parameter("fc.bias"), bias - 0.1 * gradient, rtol=1e-5)


def test_lists_and_keywords_are_inputs():
    g = pn.Graph()
    g.output("y", g.input("x", (2, 2)) * g.input("n", (), pn.i64).astype("f32"))
    run = pn.build_inference_session(g)
    np.testing.assert_array_equal(run(x=[[1, 2], [3, 4]], n=2)["y"], [[2, 4], [6, 8]])


def test_dtypes_of_outputs():
    g = pn.Graph()
    x = g.input("x", 4)
    for dtype in (pn.f32, pn.f64, pn.f16, pn.i32, pn.i64, pn.u8, pn.boolean):
        g.output(dtype.name, (x > 0).astype(dtype) if dtype is pn.boolean else x.astype(dtype))
    outputs = pn.build_inference_session(g).run(x=[0, 1, 2, 3])
    for dtype in (pn.f32, pn.f64, pn.i32, pn.i64, pn.u8, pn.boolean):
        assert outputs[dtype.name].dtype == dtype.numpy
    np.testing.assert_array_equal(outputs["f16"], [0, 1, 2, 3])


def test_half_precision_is_taken_and_given():
    g = pn.Graph()
    w = g.parameter("w", 3, 1.0, pn.f16)
    g.output("y", (g.input("x", 3, pn.f16) * w).astype("f32"))
    session = pn.build_inference_session(g)
    session.set_parameter("w", np.array([1, 2, 0.1], np.float16))
    assert session.parameter("w").dtype == np.float16
    assert session.parameter("w")[2] == np.float16(0.1)
    got = session.run(x=np.array([1, 0.5, 3], np.float16))["y"]
    np.testing.assert_allclose(got, [1, 1, 3 * np.float32(np.float16(0.1))], rtol=1e-3)
    with pytest.raises(pn.TypeError):
        session.set_input("x", np.array([1, 2, 3]))


def test_views_see_every_step_and_are_read_only(session):
    view = session.view("fc.weight")
    before = view.copy()
    session.step()
    assert not view.flags.writeable and not np.array_equal(view, before)
    np.testing.assert_array_equal(view, session.parameter("fc.weight"))
    with pytest.raises(ValueError):
        view[0, 0] = 1


def test_a_view_keeps_the_memory(session):
    session.step()
    view = session.view("fc.weight")
    expected = session.parameter("fc.weight")
    with pytest.raises(pn.ClosedError, match="views"):
        session.close()
    del session
    gc.collect()
    np.testing.assert_array_equal(view, expected)


def test_views_of_outputs():
    g = pn.Graph()
    g.output("y", g.input("x", 5) + 1)
    session = pn.build_inference_session(g)
    with pytest.raises(pn.TypeError):
        session.output_view("y")
    session.run(x=np.zeros(5, np.float32))
    view = session.output_view("y")
    session.run(x=np.ones(5, np.float32))
    np.testing.assert_array_equal(view, np.full(5, 2, np.float32))


def test_dlpack_both_ways(session):
    torch = pytest.importorskip("torch")
    x = torch.full((8, 3), 2.0, requires_grad=True)
    session.set_input("x", x)
    loss = session.step()
    session.set_input("x", np.full((8, 3), 2, np.float32))
    weight = torch.from_dlpack(session.parameter("fc.weight"))
    assert weight.shape == (1, 3) and np.isfinite(loss)
    out = torch.empty(1, 3)
    session.parameter("fc.weight", out=out)
    assert torch.equal(out, weight)


def test_hyper_parameters_act_at_the_next_step(session):
    session.learning_rate = 0
    before = session.parameter("fc.weight")
    session.step()
    np.testing.assert_array_equal(session.parameter("fc.weight"), before)
    assert session.scalars["optim.lr"] == 0
    with pytest.raises(pn.TypeError):
        session.learning_rate = -1


def test_files(session, tmp_path, regression):
    session.step()
    session.save(tmp_path / "m.safetensors", "training")
    g, loss = regression
    other = pn.build_session(g, loss, optimizer=pn.optim.sgd(0.1), seed=5)
    other.load(tmp_path / "m.safetensors", "training")
    np.testing.assert_array_equal(other.parameter("fc.weight"), session.parameter("fc.weight"))
    weights = pn.Weights.open(tmp_path / "m.safetensors")
    assert "fc.weight" in weights and weights["fc.weight"].shape == (1, 3)


def test_plans_share_the_parameters(regression, session):
    g = pn.Graph()
    g.output("y", pn.nn.linear("fc", g.input("x", (2, 3)), 1))
    evaluate = session.attach("evaluate", pn.compile(g.without_updates(), non_finite="none"))
    session.step()
    got = evaluate(x=np.ones((2, 3), np.float32))["y"]
    expected = session.parameter("fc.weight").sum() + session.parameter("fc.bias")
    np.testing.assert_allclose(got, np.full((2, 1), expected), rtol=1e-5)


def test_gradients_between_backward_and_update(regression):
    g, loss = regression
    session = pn.build_session(g, loss, optimizer=pn.optim.sgd(1.0), split_update=True)
    before = session.parameter("fc.weight")
    session.accumulate(x=np.ones((8, 3), np.float32), y=np.zeros((8, 1), np.float32))
    session.set_gradient("fc.weight", np.full((1, 3), 2, np.float32))
    session.apply()
    np.testing.assert_allclose(session.parameter("fc.weight"), before - 2, rtol=1e-6)


# --- memory


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_a_thousand_sessions_leave_nothing(regression):
    g, loss = regression
    plan = pn.compile(g, loss, optimizer=pn.optim.sgd(0.1), threads=1)

    def use():
        session = pn.Session(plan)
        session.set_input("x", np.ones((8, 3), np.float32))
        session.set_input("y", np.zeros((8, 1), np.float32))
        session.step()
        return session.view("fc.weight")

    def grown(count):
        before = resident()
        for _ in range(count):
            use()
        gc.collect()
        return resident() - before

    grown(300)  # what the allocator and the library keep for good
    assert grown(1000) < 1e6, "a kilobyte a session"


def test_models_that_are_compiled_and_dropped_leave_nothing():
    def use():
        g = pn.Graph()
        x = g.input("x", (8, 16))
        loss = pn.mse_loss(pn.nn.linear("fc", x, 4), g.input("y", (8, 4)))
        session = pn.build_session(g, loss, optimizer=pn.optim.sgd(0.1), threads=1)
        session.step(x=np.ones((8, 16), np.float32), y=np.zeros((8, 4), np.float32))

    for _ in range(10):
        use()
    gc.collect()
    before = resident()
    for _ in range(30):
        use()
    gc.collect()
    assert resident() - before < 6e6


# --- threads


def heavy_session(threads=1):
    g = pn.Graph()
    x = g.input("x", (256, 512))
    for k in range(8):
        x = pn.relu(pn.nn.linear(f"fc{k}", x, 512))
    session = pn.build_session(g, x.mean(), optimizer=pn.optim.sgd(0.1), threads=threads)
    session.set_input("x", np.ones((256, 512), np.float32))
    return session


def test_other_threads_run_while_a_step_computes():
    session = heavy_session()
    session.step()
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.0005)

    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.perf_counter()
    for _ in range(20):
        session.step()
    end = time.perf_counter()
    stop.set()
    thread.join()
    during = [t for t in ticks if begin < t < end]
    assert len(during) > (end - begin) / 0.02


def lets_others_run(call):
    """Whether a thread that waits for its turn has had it when the call is back."""
    go, ran = threading.Event(), []
    thread = threading.Thread(target=lambda: (go.wait(), ran.append(True)))
    thread.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(100)  # nobody has to give way who does not do so himself
    try:
        go.set()
        call()
        return bool(ran)
    finally:
        sys.setswitchinterval(interval)
        thread.join()


def test_other_threads_run_while_arrays_are_read_and_written():
    g = pn.Graph()
    g.output("y", g.input("x", (2048, 2048)) + g.parameter("w", (2048, 2048)))
    session = pn.build_inference_session(g)
    x, out = np.ones((2048, 2048), np.float32), np.empty((2048, 2048), np.float32)
    session.run(x=x)
    assert not any(lets_others_run(lambda: sum(range(100_000))) for _ in range(10))
    for call in (lambda: session.set_input("x", x), lambda: session.output("y"), lambda: session.output("y", out=out),
                 lambda: session.parameter("w"), lambda: session.parameter("w", out=out), lambda: session.set_parameter("w", x)):
        assert any(lets_others_run(call) for _ in range(50))  # a machine with other work wakes a thread late


def test_two_threads_at_a_time_are_an_error():
    session = heavy_session()
    errors, done = [], threading.Event()

    def step():
        while not done.is_set():
            try:
                session.step()
            except pn.ThreadError as error:
                errors.append(error)

    threads = [threading.Thread(target=step) for _ in range(3)]
    for thread in threads:
        thread.start()
    deadline = time.time() + 20
    while not errors and time.time() < deadline:
        time.sleep(0.01)
    done.set()
    for thread in threads:
        thread.join()
    assert errors and "one at a time" in str(errors[0])
    assert np.isfinite(session.step())


def test_sessions_of_several_threads_are_independent(regression):
    g, loss = regression
    plan = pn.compile(g, loss, optimizer=pn.optim.sgd(0.1))
    results = {}

    def train(k):
        session = pn.Session(plan, seed=7)
        session.set_input("x", np.full((8, 3), k % 2, np.float32))
        session.set_input("y", np.zeros((8, 1), np.float32))
        results[k] = [session.step() for _ in range(50)]

    threads = [threading.Thread(target=train, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(results[k] == results[k % 2] for k in range(8))


# --- processes


def _in_child(session, queue):
    try:
        session.step()
        queue.put("it ran")
    except pn.ThreadError as error:
        queue.put(str(error))


def _own_session(queue):
    g = pn.Graph()
    g.output("y", g.input("x", 3) * 2)
    queue.put(pn.build_inference_session(g).run(x=[1, 2, 3])["y"].tolist())


def _answer(context, target, *args):
    queue = context.Queue()
    process = context.Process(target=target, args=(*args, queue))
    process.start()
    answer = queue.get(timeout=60)
    process.join(60)
    assert process.exitcode == 0
    return answer


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_behind_a_fork_there_is_a_clear_message(session):
    session.step()
    answer = _answer(multiprocessing.get_context("fork"), _in_child, session)
    assert "forked" in answer and "spawn" in answer
    assert np.isfinite(session.step())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_can_have_sessions_of_its_own(session):
    session.step()
    assert _answer(multiprocessing.get_context("fork"), _own_session) == [2, 4, 6]
