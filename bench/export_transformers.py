#!/usr/bin/env python3
"""Two transformers as PyTorch exports them, for bench/rewriting.py and bench/pairs.py: needs torch, transformers and onnx.

  python bench/export_transformers.py FOLDER     # bert.onnx and llama.onnx
"""

import sys
from pathlib import Path

import torch
from transformers import BertConfig, BertModel, LlamaConfig, LlamaModel

BATCH, TOKENS = 4, 128


class Hidden(torch.nn.Module):
    """The last hidden state alone."""

    def __init__(self, model, **arguments):
        super().__init__()
        self.model, self.arguments = model, arguments

    def forward(self, tokens):
        return self.model(tokens, **self.arguments).last_hidden_state


def export(module, path):
    torch.onnx.export(
        module.eval(), (torch.ones(BATCH, TOKENS, dtype=torch.int64),), path, dynamo=False, opset_version=17,
        input_names=["tokens"], output_names=["hidden"], training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False,
    )  # fmt: skip


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(1)
    sizes = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "vocab_size": 1000, "attn_implementation": "eager"}
    bert = BertConfig(**sizes, intermediate_size=1024, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    export(Hidden(BertModel(bert, add_pooling_layer=False)), folder / "bert.onnx")
    llama = LlamaConfig(**sizes, intermediate_size=768, num_key_value_heads=2, use_cache=False)
    everything = torch.ones(BATCH, TOKENS, dtype=torch.int64)  # without it the mask is made with an operator that ONNX lacks
    export(Hidden(LlamaModel(llama), attention_mask=everything), folder / "llama.onnx")


if __name__ == "__main__":
    main()
