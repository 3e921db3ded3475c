"""Writes the operator tests of the installed `onnx` package (PyPI) as folders, as Debian's
libonnx-testdata has them:  python write_cases.py FOLDER;  PANTALA_ONNX_TESTS=FOLDER test_onnx"""

import pathlib
import sys

from onnx import TensorProto, numpy_helper
from onnx.backend.test.case.node import collect_testcases


def message(value, info):
    if isinstance(value, TensorProto):
        return value
    if info.type.HasField("sequence_type"):
        return numpy_helper.from_list(value, info.name)
    if info.type.HasField("optional_type"):
        return numpy_helper.from_optional(value, info.name)
    if info.type.HasField("map_type"):
        return numpy_helper.from_dict(value, info.name)
    return numpy_helper.from_array(value, info.name)


def main(folder):
    for case in collect_testcases(None):
        data = pathlib.Path(folder, case.kind, case.name, "test_data_set_0")
        data.mkdir(parents=True, exist_ok=True)
        (data.parent / "model.onnx").write_bytes(case.model.SerializeToString())
        inputs, outputs = case.data_sets[0]
        for kind, values, infos in (
            ("input", inputs, case.model.graph.input),
            ("output", outputs, case.model.graph.output),
        ):
            for k, (value, info) in enumerate(zip(values, infos)):
                (data / f"{kind}_{k}.pb").write_bytes(message(value, info).SerializeToString())


main(sys.argv[1])
