"""Exchanges weights with the safetensors package (and with transformers, where it is installed): files that they write are
read and written again by Pantala, and read by them; every tensor has the same type, shape and bits, and metadata stay.

usage: check_files.py --copier PROGRAM     PROGRAM FROM TO MAX_SHARD_BYTES copies weights
"""
import json
import os
import subprocess
import sys
import tempfile

import torch
from safetensors import safe_open
from safetensors.torch import save_file

METADATA = {"format": "pt", "author": "J\u00fcrgen \u20ac", "empty": "", "quoted": '"\\\n'}


def bits(dtype, numbers):
    """A tensor with exactly these bit patterns."""
    kind = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize]
    wrapped = [n - (1 << 8 * dtype.itemsize) if kind != torch.uint8 and n >> (8 * dtype.itemsize - 1) else n for n in numbers]
    return torch.tensor(wrapped, dtype=kind).view(dtype)


def all_types():
    """NaNs with payloads, -0, subnormals, the ends of the ranges; scalars and empty tensors."""
    return {
        "f64": bits(torch.float64, [0x7FF0000000000001, 0xFFF8DEADBEEF1234, 1 << 63, 1]),
        "f32": bits(torch.float32, [0x7F800001, 0xFFC12345, 1 << 31, 1]).reshape(2, 2),
        "f16": bits(torch.float16, [0x7C01, 0xFE34, 0x8000, 1]),
        "bf16": bits(torch.bfloat16, [0x7F81, 0xFFC5, 0x8000]),
        "i64": torch.tensor([-(1 << 63), (1 << 63) - 1]),
        "i32": torch.tensor([-(1 << 31), (1 << 31) - 1], dtype=torch.int32),
        "u8": torch.arange(256, dtype=torch.uint8),
        "bool": torch.tensor([True, False, True]),
        "scalar": torch.tensor(1.5),
        "empty": torch.zeros(3, 0, 2, dtype=torch.float16),
        "na\u00efve name/with \"signs\"": torch.arange(15, dtype=torch.float32).reshape(3, 5) / 7,
    }


def widened_types():
    """Integers that Pantala does not have, and the ones that it makes of them."""
    numbers = {
        torch.int8: ([-128, 127, 0], torch.int32),
        torch.int16: ([-(1 << 15), (1 << 15) - 1], torch.int32),
        torch.uint16: ([0, (1 << 16) - 1], torch.int32),
        torch.uint32: ([0, (1 << 32) - 1], torch.int64),
        torch.uint64: ([0, (1 << 63) - 1], torch.int64),
    }
    given = {str(dtype): torch.tensor(values, dtype=dtype) for dtype, (values, _) in numbers.items()}
    return given, {str(dtype): torch.tensor(values, dtype=wide) for dtype, (values, wide) in numbers.items()}


def read_all(path):
    """Tensors and metadata of a file, or of all files of an index, each of which must be where the index says."""
    if not path.endswith(".index.json"):
        with safe_open(path, "pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}
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
    for name, tensor in expected.items():
        assert found[name].dtype == tensor.dtype and found[name].shape == tensor.shape, f"{path}: {name}"
        raw = [t.contiguous().flatten().view(torch.uint8) if t.numel() else t for t in (found[name], tensor)]
        assert torch.equal(*raw), f"{path}: {name}"
    assert their_metadata == metadata, f"{path}: {their_metadata}"
    return len(expected)


def exchange(copier, source, expected, metadata, folder):
    """Copies the source as one file and in parts, and compares both."""
    os.makedirs(folder)
    count = 0
    for limit, ending in ((0, ""), (200, ".index.json")):
        target = os.path.join(folder, f"copy{limit}.safetensors")
        subprocess.run([copier, source, target, str(limit)], check=True)
        count += compare(target + ending, expected, metadata)
    return count


def exchange_transformers(copier, folder):
    """A small Llama with tied embeddings, as one file and as a folder of parts."""
    try:
        from transformers import LlamaConfig, LlamaForCausalLM
    except ImportError:
        return 0
    model = LlamaForCausalLM(LlamaConfig(hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
                                         num_key_value_heads=1, vocab_size=32, tie_word_embeddings=True))
    expected = {name: tensor for name, tensor in model.state_dict().items() if name != "lm_head.weight"}
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
    for name, tensor in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor), name
    return count


def main():
    copier = sys.argv[sys.argv.index("--copier") + 1]
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "all.safetensors")
        save_file(all_types(), source, metadata=METADATA)
        count = exchange(copier, source, all_types(), METADATA, os.path.join(folder, "copies"))
        given, expected = widened_types()
        source = os.path.join(folder, "narrow.safetensors")
        save_file(given, source, metadata=METADATA)
        count += exchange(copier, source, expected, METADATA, os.path.join(folder, "wide"))
        count += exchange_transformers(copier, folder)
    print(f"{count} tensors are the same")


if __name__ == "__main__":
    main()
