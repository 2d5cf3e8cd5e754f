"""Compiles a model with the operator `block::rms_norm` for programs without Python: `python compile.py FOLDER`.

It writes block.pt2, and the argument and the result of the model as input.pt and expected.pt.
"""

import sys
from pathlib import Path

import torch
from kernels import rms_norm

operator = rms_norm.as_torch_op("block::rms_norm")


class Block(torch.nn.Module):
    """A feed-forward layer with a residual connection."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(width))
        self.up = torch.nn.Linear(width, 4 * width)
        self.down = torch.nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute the layer for each row."""
        normal = operator(x, self.weight, 1e-5)
        return x + self.down(torch.nn.functional.silu(self.up(normal)))


folder = Path(sys.argv[1])
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(3)
model, x = Block(64).to(device).eval(), torch.rand(16, 64, device=device)
with torch.no_grad():
    expected = model(x)
    rows = torch.export.Dim("rows", min=2, max=1024)
    exported = torch.export.export(model, (x,), dynamic_shapes=({0: rows},))
    torch._inductor.aoti_compile_and_package(exported, package_path=str(folder / "block.pt2"))
for name, tensor in (("input", x), ("expected", expected)):
    torch.save(tensor, folder / f"{name}.pt")
print(f"compiled for {device}")
