"""Exported files in ONNX Runtime: it loads them and computes what Pantala wrote down beside them.

Usage: check_with_onnxruntime.py --writer PROGRAM, which is called with a folder and writes there, for each NAME,
NAME.onnx, NAME.inputs/*.npy and NAME.outputs/*.npy, a file for every input and output.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime

TOLERANCE = 1e-4  # of the largest magnitude


def arrays(folder):
    return {file.stem: np.load(file) for file in sorted(folder.glob("*.npy"))}


def check(model):
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    inputs = arrays(model.with_suffix(".inputs"))
    expected = arrays(model.with_suffix(".outputs"))
    assert {i.name for i in session.get_inputs()} == set(inputs), model
    names = [o.name for o in session.get_outputs()]
    assert set(names) == set(expected), model
    for name, got in zip(names, session.run(names, inputs)):
        want = expected[name]
        assert got.shape == want.shape and got.dtype == want.dtype, (model, name, got.dtype, got.shape)
        error = float(np.abs(got.astype(np.float64) - want).max() / max(np.abs(want).max(), 1e-30))
        print(f"{model.stem}: {name} {got.shape} differs by {error:.1e}")
        assert error <= TOLERANCE, (model, name, error)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--writer", required=True)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([parser.parse_args().writer, folder], check=True)
        models = sorted(pathlib.Path(folder).glob("*.onnx"))
        assert models, "nothing was exported"
        for model in models:
            check(model)
    print(f"{len(models)} files agree with ONNX Runtime")


if __name__ == "__main__":
    sys.exit(main())
