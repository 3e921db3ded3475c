"""Runs of configs, sweeps and their folders."""

import numpy as np
import pytest

import pantala as pn


@pytest.fixture
def values(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(96, 3)).astype(np.float32)
    np.savez(tmp_path / "data.npz", x=x, y=x.argmax(1))
    return [f"data.source=npz:{tmp_path / 'data.npz'}", "model.name=mlp", "model.hidden=[8]", "epochs=2", "batch_size=16",
            "optimizer.lr=0.02", "output.progress=none", f"output.folder={tmp_path / 'run'}"]


def test_a_run_and_what_is_left_of_it(values, tmp_path):
    first = pn.run.train(values=values)
    assert first.end == "finished" and first.steps > 0 and first.result["epochs"] == 2
    assert pn.run.train(values=values).end == "was_finished"
    again = pn.run.train(values=values, restart=True)
    assert again.end == "finished" and again.result["train_loss"] == first.result["train_loss"]
    assert (tmp_path / "run" / "model.safetensors").exists()
    assert any("loss" in plot for plot in pn.run.draw_plots(tmp_path / "run"))


def test_a_config_file(values, tmp_path):
    (tmp_path / "run.toml").write_text('epochs = 1\n[model]\nname = "mlp"\n')
    made = pn.run.train(tmp_path / "run.toml", [v for v in values if not v.startswith("epochs")])
    assert made.result["epochs"] == 1
    with pytest.raises(pn.TypeError, match="lrr"):
        pn.run.train(values=[*values, "optimizer.lrr=1"])
    with pytest.raises(OSError):
        pn.run.train(tmp_path / "none.toml")


def test_sweeps(values):
    made = pn.run.sweep(values=values, keys={"optimizer.lr": [0.02, 1e-6]})
    assert len(made.folders) == 2 and not made.failed and not made.interrupted and made.diverged == 0
    assert made.comparison["best"] == made.folders[0]
    assert made.comparison["keys"] == ["optimizer.lr"]
    assert pn.run.compare(made.folders)["best"] == made.folders[0]
    with pytest.raises(pn.TypeError):
        pn.run.sweep(values=values, keys=["optimizer.lrr=1,2"])


def test_a_run_that_diverges_leaves_the_others_their_turn(values):
    made = pn.run.sweep(values=[*values, "optimizer.name=sgd"], keys=["optimizer.lr=1e30,0.02"])
    assert made.diverged == 1 and len(made.folders) == 2 and made.comparison["best"] == made.folders[1]
