"""Exchanges weights with the safetensors package (and with transformers, where it is installed): files that they write are
read and written again by Pantala, and read by them; every tensor has the same type, shape and bits, and metadata stay.

usage: check_files.py --copier PROGRAM     PROGRAM FROM TO MAX_SHARD_BYTES copies weights
"""
import json
import os
import struct
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np
from safetensors import deserialize, safe_open
from safetensors.numpy import save_file

METADATA = {"format": "pt", "author": "J\u00fcrgen \u20ac", "empty": "", "quoted": '"\\\n'}
# The format's name: the type of its elements, how struct packs their bits or the number.
TYPES = {
    "F64": (np.float64, "Q"), "F32": (np.float32, "I"), "F16": (np.float16, "H"), "BF16": (ml_dtypes.bfloat16, "H"),
    "I64": (np.int64, "q"), "I32": (np.int32, "i"), "I16": (np.int16, "h"), "I8": (np.int8, "b"),
    "U64": (np.uint64, "Q"), "U32": (np.uint32, "I"), "U16": (np.uint16, "H"), "U8": (np.uint8, "B"), "BOOL": (np.bool_, "B"),
}


def tensor(dtype, numbers, shape=None):
    """(type, shape, bytes); of floats the numbers are bit patterns."""
    return dtype, list(shape if shape is not None else [len(numbers)]), struct.pack(f"<{len(numbers)}{TYPES[dtype][1]}", *numbers)


def all_types():
    """NaNs with payloads, -0, subnormals, the ends of the ranges; scalars and empty tensors."""
    return {
        "f64": tensor("F64", [0x7FF0000000000001, 0xFFF8DEADBEEF1234, 1 << 63, 1]),
        "f32": tensor("F32", [0x7F800001, 0xFFC12345, 1 << 31, 1], [2, 2]),
        "f16": tensor("F16", [0x7C01, 0xFE34, 0x8000, 1]),
        "bf16": tensor("BF16", [0x7F81, 0xFFC5, 0x8000]),
        "i64": tensor("I64", [-(1 << 63), (1 << 63) - 1]),
        "i32": tensor("I32", [-(1 << 31), (1 << 31) - 1]),
        "u8": tensor("U8", range(256)),
        "bool": tensor("BOOL", [1, 0, 1]),
        "scalar": tensor("F32", [0x3FC00000], []),
        "empty": tensor("F16", [], [3, 0, 2]),
        "na\u00efve name/with \"signs\"": tensor("F32", range(0x3E000000, 0x3E00000F), [3, 5]),
    }


def widened_types():
    """Integers that Pantala does not have, and the ones that it makes of them."""
    numbers = {
        "I8": ([-128, 127, 0], "I32"),
        "I16": ([-(1 << 15), (1 << 15) - 1], "I32"),
        "U16": ([0, (1 << 16) - 1], "I32"),
        "U32": ([0, (1 << 32) - 1], "I64"),
        "U64": ([0, (1 << 63) - 1], "I64"),
    }
    given = {dtype: tensor(dtype, values) for dtype, (values, _) in numbers.items()}
    return given, {dtype: tensor(wide, values) for dtype, (values, wide) in numbers.items()}


def write(path, tensors, metadata):
    save_file({name: np.frombuffer(data, TYPES[dtype][0]).reshape(shape) for name, (dtype, shape, data) in tensors.items()}, path, metadata)


def read_all(path):
    """Tensors and metadata of a file, or of all files of an index, each of which must be where the index says."""
    if not path.endswith(".index.json"):
        with open(path, "rb") as file:
            tensors = {name: (view["dtype"], list(view["shape"]), bytes(view["data"])) for name, view in deserialize(file.read())}
        with safe_open(path, "np") as file:
            return tensors, file.metadata() or {}
    with open(path, encoding="utf-8") as file:
        places = json.load(file)["weight_map"]
    tensors, metadata = {}, {}
    for shard in sorted(set(places.values())):
        part, metadata = read_all(os.path.join(os.path.dirname(path), shard))
        assert all(places[name] == shard for name in part), f"{path}: {shard} holds other tensors"
        tensors.update(part)
    assert set(tensors) == set(places), path
    return tensors, metadata


def compare(path, expected, metadata):
    found, their_metadata = read_all(path)
    assert set(found) == set(expected), f"{path}: {sorted(set(found) ^ set(expected))}"
    for name, one in expected.items():
        assert found[name] == one, f"{path}: {name}: {found[name]}, expected {one}"
    assert their_metadata == metadata, f"{path}: {their_metadata}"
    return len(expected)


def exchange(copier, source, expected, metadata, folder, shard_bytes=200):
    """Copies the source as one file and in parts, and compares both."""
    os.makedirs(folder)
    count = 0
    for limit, ending in ((0, ""), (shard_bytes, ".index.json")):
        target = os.path.join(folder, f"copy{limit}.safetensors")
        subprocess.run([copier, source, target, str(limit)], check=True)
        count += compare(target + ending, expected, metadata)
    return count


def exchange_transformers(copier, folder):
    """A small Llama with tied embeddings, as one file and as a folder of parts."""
    try:
        import torch
        from transformers import LlamaConfig, LlamaForCausalLM
    except ImportError:
        return 0
    torch.manual_seed(1)
    model = LlamaForCausalLM(LlamaConfig(hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
                                         num_key_value_heads=1, vocab_size=32, tie_word_embeddings=True))
    expected = {name: ("F32", list(weight.shape), weight.contiguous().numpy().tobytes())
                for name, weight in model.state_dict().items() if name != "lm_head.weight"}
    count = 0
    for name, limit in (("whole", "1GB"), ("parts", "4KB")):
        saved = os.path.join(folder, name)
        model.save_pretrained(saved, max_shard_size=limit)
        assert os.path.exists(os.path.join(saved, "model.safetensors")) == (name == "whole")
        count += exchange(copier, saved, expected, {"format": "pt"}, os.path.join(folder, name + "_copies"))
    # What Pantala wrote in parts is a model for transformers.
    parts = os.path.join(folder, "parts")
    subprocess.run([copier, os.path.join(folder, "whole"), parts, "3000"], check=True)
    again = LlamaForCausalLM.from_pretrained(parts)
    for name, weight in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], weight), name
    return count


def main():
    copier = sys.argv[sys.argv.index("--copier") + 1]
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "all.safetensors")
        write(source, all_types(), METADATA)
        count = exchange(copier, source, all_types(), METADATA, os.path.join(folder, "copies"))
        given, expected = widened_types()
        source = os.path.join(folder, "narrow.safetensors")
        write(source, given, METADATA)
        count += exchange(copier, source, expected, METADATA, os.path.join(folder, "wide"), shard_bytes=20)
        count += exchange_transformers(copier, folder)
    print(f"{count} tensors are the same")


if __name__ == "__main__":
    main()
