"""ONNX Runtime and OpenVINO as peers of compare.py: inference of the models of torch_peer.py, exported from PyTorch.

Each is told the number of threads and, OpenVINO, to answer one request at a time in f32. Spoken to by lines of JSON: see
protocol.py.
"""

import os
import tempfile

import protocol

GIVEN = protocol.parse(__doc__.splitlines()[0], runtime={"choices": ["onnxruntime", "openvino"], "required": True})
os.environ.setdefault("OMP_NUM_THREADS", str(GIVEN.threads))
# What PyTorch says about an export is no answer, and nobody reads it.
import warnings  # noqa: E402

warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch_peer  # noqa: E402

NAMES = ["mlp32", "mlp128", "mlp_wide128", "lenet64", "resnet18_b8", "resnet50_b4", "whisper_tiny"]


class WhisperStates(torch.nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder

    def forward(self, x):
        return self.encoder(x).last_hidden_state


def model_of(name):
    """The module that torch_peer.py times, in its form for evaluation, and an input for it."""
    torch.manual_seed(protocol.SEED)
    model, _, _, _ = torch_peer.WORKLOADS[name]()
    shapes = {"lenet64": (64, 1, 28, 28), "resnet18_b8": (8, 3, 224, 224), "resnet50_b4": (4, 3, 224, 224),
              "whisper_tiny": (1, 80, 3000), "mlp32": (32, 784), "mlp128": (128, 784), "mlp_wide128": (128, 784)}  # fmt: skip
    if name == "whisper_tiny":
        model = WhisperStates(model[0])
    return model.eval().to(memory_format=torch.contiguous_format), torch.randn(*shapes[name])


def opened_by_onnxruntime(path):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = GIVEN.threads
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda x: session.run(None, {"x": x})[0]


def opened_by_openvino(path):
    import openvino

    how = {"INFERENCE_NUM_THREADS": GIVEN.threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    compiled = openvino.Core().compile_model(path, "CPU", how)
    return lambda x: compiled([x])[0]


OPENED = {"onnxruntime": opened_by_onnxruntime, "openvino": opened_by_openvino}


def prepare(name, infer):
    assert infer
    model, x = model_of(name)
    folder = tempfile.TemporaryDirectory()
    path = os.path.join(folder.name, f"{name}.onnx")
    torch.onnx.export(model, (x,), path, dynamo=False, opset_version=17, input_names=["x"])
    run, array = OPENED[GIVEN.runtime](path), x.numpy()
    folder.cleanup()
    return lambda: lambda: run(array)


def main():
    answers = protocol.claim_stdout()
    torch.set_num_threads(GIVEN.threads)
    version = __import__(GIVEN.runtime).__version__
    protocol.serve(
        answers, GIVEN.runtime, version, NAMES, GIVEN.threads, prepare,
        lambda output: np.sqrt(np.mean(np.square(output))), modes=["infer"],
    )  # fmt: skip


if __name__ == "__main__":
    main()
