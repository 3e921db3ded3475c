"""Records models that PyTorch exported to ONNX: NAME.onnx without the data of its large weights, and NAME.json with how
to fill them (by name, nothing is stored), the inputs, and the outputs that PyTorch computes from both in double.

Needs torch, torchvision, transformers, onnx, onnxscript and onnxruntime; the tests need only what it wrote.
Usage: record_models.py [--out DIR] [name ...]
"""
import argparse
import io
import json
import math
import os
import warnings

import numpy as np
import onnx
import onnx.numpy_helper
import onnxruntime
import torch

warnings.filterwarnings("ignore")
KEPT = 64  # elements: larger floating initialisers are filled,
KEPT_CONSTANT = 1024  # and those that are no parameters as they are from this size on


def bits(name, count):
    """The filler: SplitMix64's mix of FNV-1a(name) + (i + 1) * golden ratio."""
    h = 0xCBF29CE484222325
    for b in name.encode():
        h = ((h ^ b) * 0x100000001B3) & ((1 << 64) - 1)
    with np.errstate(over="ignore"):
        z = np.uint64(h) + (np.arange(count, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def fill(spec):
    count = int(np.prod(spec["shape"], dtype=np.int64))
    if "low" in spec:
        z = bits(spec["fill"], count) >> np.uint64(33)
        return (spec["low"] + (z % np.uint64(spec["high"] - spec["low"])).astype(np.int64)).reshape(spec["shape"])
    u = (bits(spec["fill"], count) >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)
    v = (u - np.float32(0.5)) * np.float32(2 * spec["bound"])
    if spec["offset"]:
        v = np.float32(spec["offset"]) + v
    return v.astype(np.float32).reshape(spec["shape"])


def rule(model, name, shape, gain):
    """Weights by fan-in, norms about 1, variances positive, the rest small: activations neither vanish nor explode."""
    if name.endswith("running_var"):
        bound, offset = 0.3, 1.0
    elif len(shape) == 1:
        bound, offset = (0.2, 1.0) if name.endswith("weight") else (0.05, 0.0)
    else:
        bound, offset = math.sqrt(3.0 * gain / int(np.prod(shape[1:]))), 0.0
    if "embed" in name:
        bound = 1.0
    if name.endswith("bn3.weight"):  # keeps a deep residual net from being chaotic
        bound, offset = 0.05, 0.2
    return dict(name=name, shape=list(shape), fill=f"onnx:{model}.{name}", bound=float(np.float32(bound)), offset=offset)


def export(module, inputs, input_names, output_names, exporter, opset, folded):
    path = io.BytesIO()
    args = tuple(inputs)
    if exporter == "dynamo":
        program = torch.onnx.export(module, args, dynamo=True, input_names=input_names, output_names=output_names,
                                    opset_version=opset, verbose=False)
        return program.model_proto
    training = torch.onnx.TrainingMode.EVAL if folded else torch.onnx.TrainingMode.PRESERVE
    torch.onnx.export(module, args, path, dynamo=False, input_names=input_names, output_names=output_names,
                      opset_version=opset, training=training, do_constant_folding=folded)
    return onnx.load_from_string(path.getvalue())


def strip_notes(proto):
    """Stack traces and such: not needed, and as large as the rest."""
    proto.doc_string = ""
    del proto.metadata_props[:]
    graph = proto.graph
    graph.doc_string = ""
    del graph.metadata_props[:]
    del graph.value_info[:]
    for node in graph.node:
        node.doc_string = ""
        del node.metadata_props[:]
    for value in list(graph.input) + list(graph.output) + list(graph.initializer):
        value.doc_string = ""
        del value.metadata_props[:]


def record(out, label, module, specs, output_names, exporter="torchscript", opset=17, folded=False, gain=1.0):
    module = module.eval()
    inputs = {n: dict(s, fill=f"onnx:{label}.input.{n}") for n, s in specs.items()}
    if "low" not in next(iter(inputs.values())):
        for s in inputs.values():
            s.setdefault("offset", 0.0)
    arrays = {n: fill(s) for n, s in inputs.items()}
    state = module.state_dict()
    rules = {n: rule(label, n, t.shape, gain) for n, t in state.items() if t.is_floating_point()}
    module.load_state_dict({n: torch.from_numpy(fill(rules[n])) if n in rules else t for n, t in state.items()})
    with torch.no_grad():
        proto = export(module, [torch.from_numpy(a) for a in arrays.values()], list(arrays), output_names, exporter, opset, folded)
    strip_notes(proto)
    weights, kept, truth = [], [], "pytorch"
    for t in proto.graph.initializer:
        a = onnx.numpy_helper.to_array(t)
        if a.dtype != np.float32 or a.size <= KEPT:
            kept.append(t)
            continue
        spec = next((r for n, r in rules.items() if n == t.name and r["shape"] == list(a.shape) and np.array_equal(fill(r), a)), None)
        if spec is None and a.size > KEPT_CONSTANT:  # made by the exporter from others: a value of its own, by its own name
            spec, truth = rule(label, t.name, a.shape, gain), "onnxruntime"
            if len(a.shape) == 2:  # a transposed matrix
                spec["bound"] = float(np.float32(math.sqrt(3.0 * gain / a.shape[0])))
        if spec is None:
            kept.append(t)
            continue
        weights.append(spec)
    full = onnx.ModelProto()
    full.CopyFrom(proto)
    del full.graph.initializer[:]
    full.graph.initializer.extend(kept)
    for spec in weights:
        full.graph.initializer.append(onnx.numpy_helper.from_array(fill(spec), spec["name"]))
    session = onnxruntime.InferenceSession(full.SerializeToString(), providers=["CPUExecutionProvider"])
    theirs = session.run(None, arrays)
    outputs = [t.astype(np.float64) for t in theirs]
    if truth == "pytorch":
        with torch.no_grad():
            result = module.double()(*[torch.from_numpy(a).double() if a.dtype == np.float32 else torch.from_numpy(a) for a in arrays.values()])
        outputs = [t.double().numpy() for t in (result if isinstance(result, tuple) else (result,))]
    worst = max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(theirs, outputs))
    assert worst < 2e-5, (label, worst)
    names = [o.name for o in proto.graph.output]
    results = {n: dict(shape=list(o.shape), norm=float(np.linalg.norm(o)), largest=float(np.abs(o).max()),
                       values=[float(v) for v in o.flatten()[:1024]], tail=[float(v) for v in o.flatten()[-64:]])
               for n, o in zip(names, outputs)}
    del proto.graph.initializer[:]
    proto.graph.initializer.extend(kept)
    data = proto.SerializeToString()
    assert len(data) < 1_000_000, (label, len(data))
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, f"{label}.onnx"), "wb") as f:
        f.write(data)
    with open(os.path.join(out, f"{label}.json"), "w") as f:
        json.dump(dict(model=label, exporter=exporter, opset=proto.opset_import[0].version, truth=truth, onnxruntime_deviation=worst,
                       inputs=inputs, weights=weights, outputs=results), f, separators=(",", ":"))
    ops = sorted({n.op_type for n in proto.graph.node})
    print(f"{label}: {len(data)} bytes, {len(weights)} filled, {len(kept)} kept, {len(proto.graph.node)} nodes, truth {truth}, "
          f"deviation {worst:.1e}, norms {[round(r['norm'], 4) for r in results.values()]}, ops {' '.join(ops)}", flush=True)


class First(torch.nn.Module):
    """One tensor of what a transformers model returns."""

    def __init__(self, model, field, **arguments):
        super().__init__()
        self.model, self.field, self.arguments = model, field, arguments

    def forward(self, *inputs):
        return getattr(self.model(*inputs, **self.arguments), self.field)


def image(batch, size):
    return {"input": dict(shape=[batch, 3, size, size], bound=1.7)}


def classifier(name, size=64, batch=1, **options):
    def run(out, label):
        import torchvision
        torch.manual_seed(0)
        record(out, label, getattr(torchvision.models, name)(weights=None), image(batch, size), ["logits"], **options)
    return run


def vgg11(size, **options):
    """The two wide layers of its classifier narrowed: with them it would be half a gigabyte, without a further operator."""
    def run(out, label):
        import torchvision
        model = torchvision.models.vgg11(weights=None)
        model.classifier[0] = torch.nn.Linear(512 * 7 * 7, 128)
        model.classifier[3] = torch.nn.Linear(128, 128)
        model.classifier[6] = torch.nn.Linear(128, 1000)
        record(out, label, model, image(1, size), ["logits"], gain=2.0, **options)
    return run


def whisper(**options):
    def run(out, label):
        from transformers import WhisperConfig
        from transformers.models.whisper.modeling_whisper import WhisperEncoder
        config = WhisperConfig(d_model=64, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=128, num_mel_bins=80,
                               max_source_positions=24, dropout=0.0, attn_implementation="eager")
        record(out, label, First(WhisperEncoder(config), "last_hidden_state"), {"mel": dict(shape=[2, 80, 48], bound=1.0)},
               ["hidden"], **options)
    return run


def bert(**options):
    def run(out, label):
        from transformers import BertConfig, BertModel
        config = BertConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, vocab_size=300,
                            max_position_embeddings=64, attn_implementation="eager")
        record(out, label, First(BertModel(config, add_pooling_layer=False), "last_hidden_state"),
               {"tokens": dict(shape=[2, 12], low=0, high=300)}, ["hidden"], **options)
    return run


def llama(**options):
    def run(out, label):
        from transformers import LlamaConfig, LlamaForCausalLM
        config = LlamaConfig(hidden_size=64, intermediate_size=160, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                             vocab_size=256, tie_word_embeddings=False, rms_norm_eps=1e-5, attn_implementation="eager", use_cache=False,
                             max_position_embeddings=64)
        everything = torch.ones(2, 10, dtype=torch.int64)  # without it the mask is made with an operator that ONNX lacks
        record(out, label, First(LlamaForCausalLM(config), "logits", attention_mask=everything),
               {"tokens": dict(shape=[2, 10], low=0, high=256)}, ["logits"], **options)
    return run


def gpt2(**options):
    """Attention as users have it by default, `scaled_dot_product_attention`; the others above multiply and add by themselves."""
    def run(out, label):
        from transformers import GPT2Config, GPT2Model
        config = GPT2Config(n_embd=64, n_layer=2, n_head=4, n_inner=128, vocab_size=300, n_positions=64, attn_implementation="sdpa",
                            use_cache=False)
        everything = torch.ones(2, 12, dtype=torch.int64)  # as for llama
        record(out, label, First(GPT2Model(config), "last_hidden_state", attention_mask=everything),
               {"tokens": dict(shape=[2, 12], low=0, high=300)}, ["hidden"], **options)
    return run


def vit(**options):
    def run(out, label):
        import torchvision
        torch.backends.mha.set_fastpath_enabled(False)  # an operator of its own, which ONNX lacks
        model = torchvision.models.VisionTransformer(image_size=32, patch_size=8, num_layers=2, num_heads=4, hidden_dim=64, mlp_dim=128,
                                                     num_classes=10)
        record(out, label, model, image(2, 32), ["logits"], **options)
    return run


ALL = {
    "resnet18": classifier("resnet18", batch=2),
    "resnet18_folded": classifier("resnet18", folded=True, opset=13),
    "resnet18_dynamo": classifier("resnet18", exporter="dynamo", opset=18),
    "resnet50": classifier("resnet50", opset=15),
    "mobilenet_v2": classifier("mobilenet_v2", opset=14, gain=2.0),
    "mobilenet_v2_dynamo": classifier("mobilenet_v2", exporter="dynamo", opset=20, gain=2.0),
    "vgg11": vgg11(224, opset=13),
    "vgg11_dynamo": vgg11(64, exporter="dynamo", opset=18),
    "densenet121": classifier("densenet121", gain=1.5),
    "efficientnet_b0": classifier("efficientnet_b0", opset=16, gain=2.2),
    "efficientnet_b0_dynamo": classifier("efficientnet_b0", exporter="dynamo", opset=18, gain=2.2),
    "squeezenet1_1": classifier("squeezenet1_1", gain=2.0, batch=2, opset=13),
    "whisper_encoder": whisper(opset=17),
    "whisper_encoder_dynamo": whisper(exporter="dynamo", opset=18),
    "bert": bert(opset=14),
    "bert_dynamo": bert(exporter="dynamo", opset=18),
    "gpt2": gpt2(opset=17),
    "gpt2_dynamo": gpt2(exporter="dynamo", opset=18),
    "vit": vit(opset=17),
    "vit_dynamo": vit(exporter="dynamo", opset=20),
    "llama": llama(opset=17),
    "llama_dynamo": llama(exporter="dynamo", opset=20),
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures", "onnx"))
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    for name in arguments.names or ALL:
        ALL[name](arguments.out, name)
