"""PyTorch, eager or by torch.compile, as a peer of compare.py: the workloads of bench/compare.py in f32 on the CPU.

A training step is forward, backward, optimizer; inference is the model's outputs, in its form for evaluation. A workload is a
function that returns (model, loss function, output function, optimizer) over data already in memory; add it to WORKLOADS under
the name that `pantala bench` knows. Spoken to by lines of JSON: see protocol.py.
"""

import os

import protocol

# OpenMP's threads spin while they wait. Unbound, on a busy machine, both end up on the one idle core and spin against each other
# for whole time slices (40 ms instead of 0.4); bound to a core each, they are as fast as on a quiet machine.
os.environ.setdefault("OMP_PROC_BIND", "true")

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402


def classifier(model, x, labels, optimizer):
    return model, lambda: F.cross_entropy(model(x), labels), lambda: model(x), optimizer


def mlp(batch):
    model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
    x = torch.randn(batch, 784)
    probabilities = F.one_hot(torch.randint(0, 10, (batch,)), 10).float()
    return classifier(model, x, probabilities, torch.optim.SGD(model.parameters(), 0.01))


def mlp_wide(batch):
    model = nn.Sequential(
        nn.Linear(784, 1024), nn.GELU(), nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 10)
    )
    x, labels = torch.randn(batch, 784), torch.randint(0, 10, (batch,))
    return classifier(model, x, labels, torch.optim.Adam(model.parameters(), 1e-3, fused=True))


def lenet(batch):
    model = nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64 * 7 * 7, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip
    x, labels = torch.randn(batch, 1, 28, 28), torch.randint(0, 10, (batch,))
    return classifier(model, x, labels, torch.optim.Adam(model.parameters(), 1e-3, fused=True))


def resnet(depth, batch, layout):
    import torchvision

    model = getattr(torchvision.models, f"resnet{depth}")(weights=None).to(memory_format=layout)
    x = torch.randn(batch, 3, 224, 224).contiguous(memory_format=layout)
    labels = torch.randint(0, 1000, (batch,))
    return classifier(model, x, labels, torch.optim.SGD(model.parameters(), 1e-3, momentum=0.9, foreach=True))


def whisper_tiny(frames):
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    encoder = WhisperEncoder(WhisperConfig(
        d_model=384, encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536, num_mel_bins=80,
        max_source_positions=frames // 2, dropout=0.0, attn_implementation="sdpa",
    ))  # fmt: skip
    project = nn.Linear(384, 64, bias=False)
    model = nn.ModuleList([encoder, project])
    model.requires_grad_(True)  # the table of positions, too
    x, labels = torch.randn(1, 80, frames), torch.randint(0, 64, (frames // 2,))

    def states():
        return encoder(x).last_hidden_state

    def loss():
        return F.cross_entropy(project(states()).view(-1, 64), labels)

    return model, loss, states, torch.optim.Adam(model.parameters(), 1e-4, fused=True)


class Block(nn.Module):
    """A layer of a causal transformer, norms first."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, sequence, width = x.shape
        parts = self.qkv(self.n1(x)).split(width, 2)
        q, k, v = (part.view(batch, sequence, self.heads, width // self.heads).transpose(1, 2) for part in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, sequence, width))
        return x + self.down(F.gelu(self.up(self.n2(x))))


def transformer(batch, sequence, layers, width, heads, vocabulary):
    model = nn.ModuleDict({
        "tok": nn.Embedding(vocabulary, width),
        "pos": nn.Embedding(sequence, width),
        "blocks": nn.ModuleList(Block(width, heads) for _ in range(layers)),
        "norm": nn.LayerNorm(width),
    })  # fmt: skip
    tokens = torch.randint(0, vocabulary, (batch, sequence))
    labels = torch.randint(0, vocabulary, (batch * sequence,))

    def logits():
        h = model["tok"](tokens) + model["pos"].weight
        for block in model["blocks"]:
            h = block(h)
        return F.linear(model["norm"](h), model["tok"].weight)

    def loss():
        return F.cross_entropy(logits().view(-1, vocabulary), labels)

    return model, loss, logits, torch.optim.AdamW(model.parameters(), 1e-4, fused=True)


def smollm2(batch, sequence):
    from transformers import LlamaConfig, LlamaForCausalLM

    vocabulary = 49152
    model = LlamaForCausalLM(LlamaConfig(
        hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9, num_key_value_heads=3,
        vocab_size=vocabulary, tie_word_embeddings=True, max_position_embeddings=8192, rope_theta=100000.0,
        rms_norm_eps=1e-5, attn_implementation="sdpa", use_cache=False,
    ))  # fmt: skip
    tokens = torch.randint(0, vocabulary, (batch, sequence))
    labels = torch.randint(0, vocabulary, (batch * sequence,))

    def logits():
        return model(tokens).logits

    def loss():
        return F.cross_entropy(logits().view(-1, vocabulary), labels)

    return model, loss, logits, torch.optim.AdamW(model.parameters(), 1e-4, fused=True)


WORKLOADS = {
    "mlp32": lambda: mlp(32),
    "mlp128": lambda: mlp(128),
    "mlp_wide128": lambda: mlp_wide(128),
    "lenet64": lambda: lenet(64),
    # Each in the layout in which it is faster.
    "resnet18_b8": lambda: resnet(18, 8, torch.contiguous_format),
    "resnet50_b4": lambda: resnet(50, 4, torch.channels_last),
    "whisper_tiny": lambda: whisper_tiny(3000),
    "tfm8": lambda: transformer(8, 256, 8, 256, 4, 8192),
    "smollm2_b1_s128": lambda: smollm2(1, 128),
}


def prepare(name, infer, compiled=False):
    if compiled:
        torch._dynamo.reset()  # what another workload was compiled to is not needed any more

    def start():
        torch.manual_seed(protocol.SEED)
        model, loss_of, output_of, optimizer = WORKLOADS[name]()
        if compiled:
            loss_of, output_of = torch.compile(loss_of), torch.compile(output_of)

        def train_step():
            loss = loss_of()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            return loss.detach()

        def infer_step():
            with torch.inference_mode():
                return output_of()

        model.train(not infer)
        return infer_step if infer else train_step

    return start


def main():
    given = protocol.parse(__doc__.splitlines()[0], compile={"action": "store_true"})
    answers = protocol.claim_stdout()
    torch.set_num_threads(given.threads)
    protocol.serve(
        answers, "torch_compiled" if given.compile else "torch", torch.__version__, WORKLOADS, given.threads,
        lambda name, infer: prepare(name, infer, given.compile), lambda output: output.square().mean().sqrt(),
    )  # fmt: skip


if __name__ == "__main__":
    main()
