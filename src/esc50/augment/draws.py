"""Random numbers that belong to one batch: a function of seed, epoch, batch and process alone."""

import hashlib
import math

import torch
from torch import Tensor


def seed_of(*parts: int | str) -> int:
    """A 63-bit seed from any numbers and words; unlike a sum, no two lists of parts share one by design."""
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


class Draws:
    """The random numbers of one batch.

    Small draws (one number an example) come from a CPU generator, so they are the same on every device. With several
    processes the numbers of the whole batch are drawn everywhere and process `rank` of `world` takes every `world`-th, as
    the sampler deals out clips: the examples get the numbers they would have got from one process.
    """

    def __init__(self, *, seed: int, epoch: int, batch: int, rank: int = 0, world: int = 1):
        self.rank, self.world = rank, world
        self._key = (seed, epoch, batch)
        self._generator = torch.Generator().manual_seed(seed_of(*self._key))

    def uniform(self, *shape: int, low: float = 0.0, high: float = 1.0) -> Tensor:
        """Float32 within [low, high), on the CPU; `shape[0]` is the number of examples."""
        whole = torch.rand(shape[0] * self.world, *shape[1:], generator=self._generator)
        return low + (high - low) * whole[self.rank :: self.world]

    def integers(self, *shape: int, low: int = 0, high: Tensor | int) -> Tensor:
        """Int64 within [low, high], both inclusive, on the CPU; `high` may differ from example to example."""
        high = torch.as_tensor(high)
        span = (high - low + 1).reshape(high.shape + (1,) * (len(shape) - high.dim()))
        return low + torch.minimum((self.uniform(*shape) * span).long(), span - 1)

    def normal_like(self, x: Tensor) -> Tensor:
        """Standard normal numbers in the shape and on the device of `x`, too many to draw on the CPU and move."""
        generator = self._generator_on(x.device, self.rank)
        return torch.randn(x.shape, generator=generator, device=x.device, dtype=x.dtype)

    def bytes_like(self, x: Tensor) -> Tensor:
        """Uniform uint8 numbers in the shape and on the device of `x`; eight come out of one draw, and they take a quarter
        of the memory of floats."""
        whole = len(x) * self.world, *x.shape[1:]  # drawn for all processes, as small numbers are
        size = math.prod(whole)
        words = torch.empty(-(-size // 8), dtype=torch.int64, device=x.device)
        words.random_(-(2**63), None, generator=self._generator_on(x.device))
        return words.view(torch.uint8)[:size].view(whole)[self.rank :: self.world]

    def _generator_on(self, device: torch.device, *more: int) -> torch.Generator:
        """A generator for large draws, seeded anew at each call."""
        number = int(torch.randint(2**31, (1,), generator=self._generator))
        return torch.Generator(device=device).manual_seed(seed_of(*self._key, number, *more))

    def permutation(self, num_examples: int) -> Tensor:
        """A random order of the examples of this process, int64 on the CPU."""
        return torch.argsort(self.uniform(num_examples))

    def beta(self, alpha: float, num_examples: int) -> Tensor:
        """Beta(alpha, alpha), float32 on the CPU, one number an example (inverse of the distribution function)."""
        from scipy.special import betaincinv

        return torch.from_numpy(betaincinv(alpha, alpha, self.uniform(num_examples).double().numpy())).float()
