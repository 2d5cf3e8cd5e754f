"""A transformer block of PyTorch with two kernels as operators, RMSNorm and rotary embedding, under torch.compile."""

import math
import sys

from weft import cuda

try:
    import torch
except ImportError:
    print("15_torch_block: PyTorch is not installed; nothing is run")
    sys.exit()

THREADS = 128


@cuda.jit("void(float32[:, :], float32[:], float32, float32[:, :])")
def rms_norm(x, weight, eps, out):
    """One block for each row: out = x / rms(x) * weight."""
    row, thread = cuda.blockIdx.x, cuda.threadIdx.x
    partial = cuda.shared.array(THREADS, "float32")
    total = cuda.float32(0)
    for column in range(thread, x.shape[1], THREADS):
        total += x[row, column] * x[row, column]
    partial[thread] = total
    cuda.syncthreads()
    step = THREADS // 2
    while step > 0:
        if thread < step:
            partial[thread] += partial[thread + step]
        cuda.syncthreads()
        step //= 2
    scale = 1 / math.sqrt(partial[0] / x.shape[1] + eps)
    for column in range(thread, x.shape[1], THREADS):
        out[row, column] = x[row, column] * scale * weight[column]


@cuda.jit("void(float32[:, :, :], float32, float32[:, :, :])")
def rotary(x, sign, out):
    """Rotate pairs of a head's elements by an angle that grows with the position: x is [position, head, element]."""
    i = cuda.grid(1)
    pairs = x.shape[2] // 2
    if i < x.size // 2:
        position, head, pair = i // (x.shape[1] * pairs), i // pairs % x.shape[1], i % pairs
        angle = position * math.exp(-math.log(10000.0) * pair / pairs)
        cosine, sine = math.cos(angle), sign * math.sin(angle)
        first, second = x[position, head, pair], x[position, head, pair + pairs]
        out[position, head, pair] = first * cosine - second * sine
        out[position, head, pair + pairs] = first * sine + second * cosine


def rms_norm_backward(grad, x, weight, eps):
    """Return the gradients of RMSNorm, in PyTorch."""
    scale = torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    scaled = grad * weight
    of_x = scale * scaled - x * scale**3 * (scaled * x).mean(-1, keepdim=True)
    return of_x, (grad * x * scale).sum(0)


rms_norm_op = rms_norm.as_torch_op(
    "examples::rms_norm",
    launch=lambda x: (x.shape[0], THREADS),
    out=cuda.like("x"),
    backward=rms_norm_backward,
)
# The gradient of a rotation is the rotation back: the same operator with the other sign.
rotary_op = rotary.as_torch_op(
    "examples::rotary",
    launch=lambda x: ((x.size // 2 + 255) // 256, 256),
    out=cuda.like("x"),
    backward=lambda grad, x, sign: rotary_op(grad.contiguous(), -sign),
)


class Block(torch.nn.Module):
    """Attention and a feed-forward network, each after an RMSNorm."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = torch.nn.ParameterList([torch.ones(width), torch.ones(width)])
        self.qkv = torch.nn.Linear(width, 3 * width, bias=False)
        self.project = torch.nn.Linear(width, width, bias=False)
        self.feed = torch.nn.Sequential(
            torch.nn.Linear(width, 4 * width), torch.nn.SiLU(), torch.nn.Linear(4 * width, width)
        )

    def norm(self, x, weight):
        """Normalize rows."""
        return rms_norm_op(x, weight, 1e-6)

    def rotate(self, x):
        """Add positions to heads."""
        return rotary_op(x, 1.0)

    def forward(self, x):
        """Run the block on [position, element]."""
        length, width = x.shape
        q, k, v = self.qkv(self.norm(x, self.norms[0])).reshape(length, 3, self.heads, -1).unbind(1)
        q, k = self.rotate(q), self.rotate(k)
        q, k, v = (part.transpose(0, 1)[None] for part in (q, k, v))
        mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)[0]
        x = x + self.project(mixed.transpose(0, 1).reshape(length, width))
        return x + self.feed(self.norm(x, self.norms[1]))


class Reference(Block):
    """Return the same block with PyTorch's own functions in place of the kernels."""

    def norm(self, x, weight):
        """Normalize rows."""
        return torch.nn.functional.rms_norm(x, x.shape[-1:], weight, 1e-6)

    def rotate(self, x):
        """Add positions to heads."""
        pairs = x.shape[-1] // 2
        angles = torch.outer(
            torch.arange(x.shape[0], device=x.device),
            torch.exp(-math.log(10000.0) * torch.arange(pairs, device=x.device) / pairs),
        )[:, None]
        first, second = x[..., :pairs], x[..., pairs:]
        return torch.cat(
            [first * angles.cos() - second * angles.sin(), first * angles.sin() + second * angles.cos()], -1
        )


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    block = Block(width=128, heads=4).to(device)
    reference = Reference(width=128, heads=4).to(device)
    reference.load_state_dict(block.state_dict())
    x = torch.randn(96, 128, device=device)

    expected = reference(x)
    torch.testing.assert_close(block(x), expected, rtol=1e-4, atol=1e-4)
    # Where there is a GPU, inductor generates code around the operators; "aot_eager" needs no compiler of C++.
    backend = "inductor" if device == "cuda" else "aot_eager"
    compiled = torch.compile(block, backend=backend, fullgraph=True)
    torch.testing.assert_close(compiled(x), expected, rtol=1e-4, atol=1e-4)

    compiled(x).square().sum().backward()
    reference(x).square().sum().backward()
    for (name, ours), (_, theirs) in zip(block.named_parameters(), reference.named_parameters(), strict=True):
        torch.testing.assert_close(
            ours.grad, theirs.grad, rtol=1e-3, atol=1e-3, msg=lambda text, name=name: f"{name}: {text}"
        )
    print(f"15_torch_block: values and gradients of a compiled transformer block on {device}: ok")


if __name__ == "__main__":
    main()
