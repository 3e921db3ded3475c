"""JAX, jit, as a peer of compare.py: the workloads of bench/compare.py in f32 on the CPU.

The same models as torch_peer.py, images with channels last (the layout that XLA's convolutions on the CPU are fastest in).
A workload is a function that returns (parameters, output(parameters, x), loss(output, y), (x, y), optimizer); add it to
WORKLOADS under the name that `pantala bench` knows. Inference is the output alone. JAX has no option for its number of threads:
its pool is as large as the set of processors that the process may run on, hence the binding before the import. Spoken to by
lines of JSON: see protocol.py.
"""

import math
import os

import protocol

THREADS = protocol.parse_threads(__doc__.splitlines()[0])
protocol.hold_to_cores(THREADS)
os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import optax  # noqa: E402
from jax import lax  # noqa: E402


class Random:
    """Draws from one seed, each different; parameters are uniform within 1/sqrt(fan in), as PyTorch's layers begin."""

    def __init__(self, seed):
        self.key = jax.random.PRNGKey(seed)

    def next_key(self):
        self.key, key = jax.random.split(self.key)
        return key

    def normal(self, *shape):
        return jax.random.normal(self.next_key(), shape)

    def labels(self, count, classes):
        return jax.random.randint(self.next_key(), (count,), 0, classes)

    def layer(self, *weight_shape):
        """Weight and bias; the last dimension of the weight is the output's, all others are the fan in."""
        bound = 1 / math.sqrt(math.prod(weight_shape[:-1]))
        weight = jax.random.uniform(self.next_key(), weight_shape, minval=-bound, maxval=bound)
        return weight, jax.random.uniform(self.next_key(), weight_shape[-1:], minval=-bound, maxval=bound)


def linear(layer, x):
    weight, bias = layer
    return x @ weight + bias


def conv(layer, x):
    weight, bias = layer
    same = [(1, 1), (1, 1)]
    return lax.conv_general_dilated(x, weight, (1, 1), same, dimension_numbers=("NHWC", "HWIO", "NHWC")) + bias


def max_pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def cross_entropy_of_probabilities(logits, probabilities):
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * probabilities, -1))


def cross_entropy_of_labels(logits, labels):
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, labels))


def mlp(batch):
    random = Random(protocol.SEED)
    parameters = [random.layer(784, 128), random.layer(128, 10)]

    def output(p, x):
        return linear(p[1], jax.nn.relu(linear(p[0], x)))

    data = random.normal(batch, 784), jax.nn.one_hot(random.labels(batch, 10), 10)
    return parameters, output, cross_entropy_of_probabilities, data, optax.sgd(0.01)


def mlp_wide(batch):
    random = Random(protocol.SEED)
    parameters = [random.layer(784, 1024), random.layer(1024, 1024), random.layer(1024, 10)]

    def gelu(x):
        return jax.nn.gelu(x, approximate=False)

    def output(p, x):
        return linear(p[2], gelu(linear(p[1], gelu(linear(p[0], x)))))

    data = random.normal(batch, 784), random.labels(batch, 10)
    return parameters, output, cross_entropy_of_labels, data, optax.adam(1e-3)


def lenet(batch):
    random = Random(protocol.SEED)
    parameters = [random.layer(3, 3, 1, 32), random.layer(3, 3, 32, 64), random.layer(7 * 7 * 64, 128), random.layer(128, 10)]

    def output(p, x):
        h = max_pool(jax.nn.relu(conv(p[0], x)))
        h = max_pool(jax.nn.relu(conv(p[1], h))).reshape(batch, -1)
        return linear(p[3], jax.nn.relu(linear(p[2], h)))

    data = random.normal(batch, 28, 28, 1), random.labels(batch, 10)
    return parameters, output, cross_entropy_of_labels, data, optax.adam(1e-3)


WORKLOADS = {
    "mlp32": lambda: mlp(32),
    "mlp128": lambda: mlp(128),
    "mlp_wide128": lambda: mlp_wide(128),
    "lenet64": lambda: lenet(64),
}


def prepare(name, infer):
    initial, output_of, loss_of_output, data, optimizer = WORKLOADS[name]()
    infer_jit = jax.jit(output_of)

    def loss_of(parameters, x, y):
        return loss_of_output(output_of(parameters, x), y)

    def train(parameters, state, x, y):
        loss, gradients = jax.value_and_grad(loss_of)(parameters, x, y)
        updates, state = optimizer.update(gradients, state, parameters)
        return optax.apply_updates(parameters, updates), state, loss

    # Parameters and state are given away, so that XLA may update them in place.
    train_jit = jax.jit(train, donate_argnums=(0, 1))

    def start():
        parameters = jax.tree.map(jnp.copy, initial)
        state = optimizer.init(parameters)

        def train_step():
            nonlocal parameters, state
            parameters, state, loss = train_jit(parameters, state, *data)
            return loss.block_until_ready()  # the outputs of one program are ready together

        def infer_step():
            return infer_jit(parameters, data[0]).block_until_ready()

        return infer_step if infer else train_step

    return start


def main():
    answers = protocol.claim_stdout()
    protocol.serve(answers, "jax", jax.__version__, WORKLOADS, THREADS, prepare, lambda output: jnp.sqrt(jnp.mean(output**2)))


if __name__ == "__main__":
    main()
