"""The recorded models through the package: outputs in evaluation, losses, gradients, and what training
leaves, as PyTorch has computed them in double precision (tests/fixtures/README.md has the bounds)."""

import json

import numpy as np
import pytest

import pantala as pn
from conftest import ROOT
from fills import filled

FOLDER = ROOT / "tests" / "fixtures" / "models"


def input_of(case):
    return next(iter(case["inputs"].values()))["shape"]


def shape_of(case, name):
    return next(entry["shape"] for entry in case["parameters"] if entry["name"] == name)


def count(case, end):
    return sum(entry["name"].endswith(end) for entry in case["parameters"])


def resnet(name):
    layers, _, folded = name.removeprefix("resnet").partition("_")
    form = "folded" if folded else "batch_norm"

    def made(case, training):
        batch, channels, height, width = input_of(case)
        function = getattr(pn.zoo, f"resnet{layers}{'_training' if training else ''}")
        return function(batch, form, channels, height, width, case["inputs"]["labels"]["high"])

    return made


def whisper(case, training):
    width, mels, _ = shape_of(case, "model.encoder.conv1.weight")
    config = pn.zoo.WhisperConfig(
        d_model=width, n_heads=width // 64, n_mels=mels, n_layers=count(case, "self_attn.q_proj.weight"),
        ffn_dim=shape_of(case, "model.encoder.layers.0.fc1.weight")[0],
        max_source_positions=shape_of(case, "model.encoder.embed_positions.weight")[0])
    batch, _, frames = input_of(case)
    if training:
        return pn.zoo.whisper_training(config, batch, frames, case["inputs"]["labels"]["high"])
    return pn.zoo.whisper_encoder(config, batch, frames)


def llama(heads):
    def made(case, training):
        vocabulary, hidden = shape_of(case, "model.embed_tokens.weight")
        config = pn.zoo.LlamaConfig(
            vocabulary=vocabulary, hidden=hidden, heads=heads, layers=count(case, "input_layernorm.weight"),
            intermediate=shape_of(case, "model.layers.0.mlp.up_proj.weight")[0],
            kv_heads=shape_of(case, "model.layers.0.self_attn.k_proj.weight")[0] // (hidden // heads))
        return pn.zoo.llama(config, *input_of(case))

    return made


MODELS = {
    "mlp": lambda case, training: pn.zoo.mlp(*input_of(case)),
    "lenet": lambda case, training: pn.zoo.lenet(input_of(case)[0]),
    **{name: resnet(name) for name in ("resnet18", "resnet50", "resnet18_folded", "resnet50_folded")},
    "whisper_tiny": whisper, "whisper_tiny_short": whisper,
    "smollm2_small": llama(6), "smollm2_135m_4l": llama(9),
}


def test_every_recorded_model_is_here():
    assert set(MODELS) == {path.stem for path in FOLDER.glob("*.json")}


def inputs_for(case, session):
    """Recorded inputs have names of their own: each goes to the first free input of its kind."""
    free = dict(session.inputs)
    for entry in case["inputs"].values():
        values = filled(entry)
        fitting = [name for name, type in free.items() if type.dtype.is_float == (values.dtype.kind == "f")]
        if fitting:
            type = free.pop(fitting[0])
            session.set_input(fitting[0], values.reshape(type.shape) if values.size == np.prod(type.shape) else values)
    assert not free


def set_parameters(case, session):
    """All of the session's are recorded; a graph for evaluation may lack what only the loss needs."""
    recorded = {entry["name"]: entry for entry in case["parameters"]}
    for name in session.parameters:
        session.set_parameter(name, filled(recorded[name]))


def evaluated(case, model):
    graph = model.graph if isinstance(model, pn.zoo.Model) else model
    name = "last_hidden_state" if "last_hidden_state" in graph.outputs else "logits"
    session = pn.build_inference_session(graph.with_outputs({name: graph.output(name)}).without_updates())
    set_parameters(case, session)
    inputs_for(case, session)
    return session.run()[name]


def check_outputs(recorded, got, bound):
    assert list(got.shape) == recorded["shape"]
    flat, largest = got.ravel().astype(np.float64), recorded["largest"]
    assert np.linalg.norm(flat) == pytest.approx(recorded["norm"], rel=bound)
    for part, expected in ((flat[: len(recorded["head"])], recorded["head"]), (flat[-len(recorded["tail"]) :], recorded["tail"])):
        np.testing.assert_allclose(part, expected, rtol=0, atol=bound * largest)


def check_gradients(recorded, session, bound):
    largest = max(entry["norm"] for entry in recorded.values())
    for name, expected in recorded.items():
        gradient = session.gradient(name).astype(np.float64)
        scale = max(expected["norm"], 1e-6 * largest)  # one that is zero but for rounding
        assert abs(np.linalg.norm(gradient) - expected["norm"]) <= bound * scale, name
        assert abs(gradient.sum() - expected["sum"]) <= bound * scale * gradient.size**0.5, name
        head = gradient.ravel()[: len(expected["head"])]
        np.testing.assert_allclose(head, expected["head"], rtol=0, atol=bound * scale, err_msg=name)


@pytest.mark.parametrize("name", MODELS)
def test_models(name):
    case = json.loads((FOLDER / f"{name}.json").read_text())
    deviation = case["f32_deviation"]
    if "eval_outputs_before_training" in case:
        got = evaluated(case, MODELS[name](case, False))
        check_outputs(case["eval_outputs_before_training"], got, max(1e-3, 10 * deviation["eval_outputs"]))
    model = MODELS[name](case, True)
    options = {key: value for key, value in case["optimizer"].items() if key != "name"}
    optimizer = getattr(pn.optim, case["optimizer"]["name"])(**options)
    session = pn.build_session(model.graph, model.loss, optimizer=optimizer, observe_gradients=True)
    set_parameters(case, session)
    inputs_for(case, session)
    norms = "running_statistics_norms_after" in case
    for step, expected in enumerate(case["losses"]):
        bound = max(1e-4, 10 * deviation["losses"][step])
        assert session.step() == pytest.approx(expected, rel=bound), f"step {step}"
        if step == 0:
            check_gradients(case["gradients_step0"], session, max(1e-2 if norms else 2e-3, 10 * deviation["gradient_norm_worst"]))
    for key, expected in case["parameter_norms_after"].items():
        assert np.linalg.norm(session.parameter(key).astype(np.float64)) == pytest.approx(expected, rel=1e-4), key
    for key, expected in case.get("running_statistics_norms_after", {}).items():
        assert np.linalg.norm(session.state(key).astype(np.float64)) == pytest.approx(expected, rel=1e-4), key
