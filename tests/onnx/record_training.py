"""Records small networks that PyTorch exported before their first step, with the losses and statistics of PyTorch's own
training in double: NAME.onnx, whole, and NAME.json.

Needs torch, onnx and onnxscript; the tests need only what it wrote.
Usage: record_training.py [--out DIR] [name ...]
"""
import argparse
import copy
import io
import json
import logging
import os
import warnings

import onnx
import torch
from torch import nn
from torch.nn import functional as F

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
RATE, STEPS = 0.1, 5
TOLD = ("pkg.torch.onnx.name_scopes", "pkg.torch.onnx.fx_node", "pkg.torch.export.ExportedProgram.graph_signature")


class Norms(nn.Module):
    """Two batch norms: all their weights and statistics are ones and zeros."""

    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(2, 3, 3, padding=1), nn.BatchNorm2d(3)
        self.blocks = nn.Sequential(nn.Conv2d(3, 3, 3, bias=False), nn.BatchNorm2d(3), nn.ReLU())
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        return self.fc(self.blocks(F.relu(self.bn1(self.conv1(x)))).mean((2, 3)))


class NormsLast(Norms):
    """Norms behind ReLU, which are not folded into convolutions."""

    def forward(self, x):
        conv2, bn2, relu = self.blocks
        return self.fc(bn2(relu(conv2(self.bn1(F.relu(self.conv1(x)))))).mean((2, 3)))


class Twice(nn.Module):
    """One batch norm in two places."""

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(2, 3, 3, padding=1), nn.Conv2d(3, 3, 3)
        self.bn, self.fc = nn.BatchNorm2d(3), nn.Linear(3, 3)

    def forward(self, x):
        return self.fc(F.relu(self.bn(self.conv2(F.relu(self.bn(self.conv1(x)))))).mean((2, 3)))


class ScaledBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.act = nn.Conv2d(2, 2, 3, padding=1), nn.PReLU(2)
        self.layer_scale = nn.Parameter(torch.full((2, 1, 1), 0.5))

    def forward(self, x):
        return x + self.layer_scale * self.act(self.conv(x))


class Scales(nn.Module):
    """Scales that are equal: of PReLU, with three axes as ConvNeXt's, and in a list."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([ScaledBlock(), ScaledBlock()])
        self.gammas = nn.ParameterList([nn.Parameter(torch.ones(2, 1, 1)) for _ in range(2)])
        self.fc = nn.Linear(2, 3)

    def forward(self, x):
        for block, gamma in zip(self.blocks, self.gammas):
            x = torch.tanh(block(x) * gamma)
        return self.fc(x.mean((2, 3)))


class Copies(nn.Module):
    """Layers that are copies of one, as nn.TransformerEncoder makes them: equal, and not ones or zeros."""

    def __init__(self):
        super().__init__()
        inner, outer = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.LayerNorm(4)), nn.Linear(4, 4)
        self.inner, self.outer = (nn.ModuleList([copy.deepcopy(m) for _ in range(2)]) for m in (inner, outer))
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        x = x.flatten(2).transpose(1, 2)  # [batch, positions, 4]: the exporter transposes these weights
        for layer in self.inner:
            x = x + layer(x)
        x = x.mean(1)
        for layer in self.outer:
            x = torch.tanh(layer(x))
        return self.head(x)


def pictures(channels, size):
    """Numbers that are exact in f32."""
    count = 4 * channels * size * size
    return torch.tensor([((k * 37) % 29 - 14) / 8 for k in range(count)]).reshape(4, channels, size, size)


def newer(module, x, optimize):
    program = torch.onnx.export(module, (x,), dynamo=True, optimize=optimize, input_names=["x"], output_names=["logits"],
                                dynamic_shapes=({0: torch.export.Dim("batch")},), verbose=False)
    return program.model_proto


def older(module, x, training):
    file = io.BytesIO()
    mode = torch.onnx.TrainingMode.TRAINING if training else torch.onnx.TrainingMode.PRESERVE
    torch.onnx.export(module, (x,), file, dynamo=False, do_constant_folding=False, training=mode, input_names=["x"],
                      output_names=["logits"], dynamic_axes={"x": {0: "batch"}})
    return onnx.load_from_string(file.getvalue())


def keeps(entry):
    """Of the calls those with parameters or buffers."""
    return not entry.key.endswith("fx_node") or "%p_" in entry.value or "%b_" in entry.value


def strip_notes(proto):
    """Stack traces and such: not needed, and larger than the rest."""
    del proto.graph.value_info[:]
    for holder in [proto, proto.graph, *proto.graph.node, *proto.graph.input, *proto.graph.output, *proto.graph.initializer]:
        holder.doc_string = ""
        told = [(p.key, p.value) for p in holder.metadata_props if p.key in TOLD and keeps(p)]
        del holder.metadata_props[:]
        for key, value in told:
            holder.metadata_props.add(key=key, value=value)


def train(module, x, labels):
    module = module.double().train()
    optimizer = torch.optim.SGD(module.parameters(), RATE)
    losses = []
    for _ in range(STEPS):
        loss = F.cross_entropy(module(x.double()), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def record(out, label, kind, x, exporter, training, optimize=False):
    torch.manual_seed(1)
    module = kind().train(training)
    proto = newer(module, x, optimize) if exporter == "newer" else older(module, x, training)
    strip_notes(proto)
    labels = torch.tensor([0, 1, 2, 0])
    losses = train(module, x, labels)
    parameters = sorted(name for name, _ in module.named_parameters())
    statistics = {n: b.tolist() for n, b in module.named_buffers() if b.is_floating_point()}
    data = proto.SerializeToString()
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, f"{label}.onnx"), "wb") as f:
        f.write(data)
    with open(os.path.join(out, f"{label}.json"), "w") as f:
        json.dump(dict(exporter=exporter, torch=torch.__version__, shape=list(x.shape), x=x.flatten().tolist(), labels=labels.tolist(),
                       rate=RATE, losses=losses, parameters=parameters, statistics=statistics), f, separators=(",", ":"))
    print(f"{label}: {len(data)} bytes, losses {[round(v, 6) for v in losses]}, parameters {parameters}", flush=True)


ALL = {
    "norms_newer_eval": dict(kind=Norms, exporter="newer", training=False),
    "norms_newer_train": dict(kind=Norms, exporter="newer", training=True),
    "norms_newer_merged": dict(kind=NormsLast, exporter="newer", training=True, optimize=True),
    "norms_older_eval": dict(kind=Norms, exporter="older", training=False),
    "norms_older_train": dict(kind=Norms, exporter="older", training=True),
    "twice_newer_eval": dict(kind=Twice, exporter="newer", training=False),
    "twice_newer_train": dict(kind=Twice, exporter="newer", training=True),
    "twice_older_eval": dict(kind=Twice, exporter="older", training=False),
    "twice_older_train": dict(kind=Twice, exporter="older", training=True),
    "scales_newer_merged": dict(kind=Scales, exporter="newer", training=True, optimize=True),
    "scales_older_eval": dict(kind=Scales, exporter="older", training=False),
    "copies_newer_merged": dict(kind=Copies, exporter="newer", training=True, optimize=True),
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures", "onnx_training"))
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    for name in arguments.names or ALL:
        size = dict(copies=(4, 2)).get(name.split("_")[0], (2, 4))
        record(arguments.out, name, x=pictures(*size), **ALL[name])
