"""Another processor, emulated: first weights that differ in their last bit.

Training amplifies the last bit, so that a processor that adds in another order ends with slightly other weights. Jitter does
the same on purpose, and on one machine: what still holds under a few draws of it holds on other processors.
`make stability` runs every notebook under five draws; conftest.py then has each kernel `install` one at its start. The two
descents without an optimiser, lesson 03's with two numbers and assignment 6's with thirty, are in double precision, where
the last bit is nowhere near what they print: they stay out.
"""

import os

SIZE = 2e-7  # of the noise, relative to each weight: about one unit in the last place of float32
DRAWS = range(1, 6)
VARIABLE = "ATTENTION_COURSE_JITTER"  # an environment variable: the draw that a kernel of `make stability` works under


def touch(weights):
    """Multiply a list of tensors, in place, by 1 + SIZE · normal noise, if the environment variable asks for it.

    Its value seeds the noise: the same shapes get the same, so that two loops which a cell compares begin alike. torch's
    global random numbers are left alone. For weights that no optimiser gets, call it yourself: a very deep stack, say,
    amplifies the last bit without training.
    """
    draw = os.environ.get(VARIABLE)
    if not draw:
        return
    import torch

    generator = torch.Generator().manual_seed(int(draw))
    with torch.no_grad():
        for weight in weights:
            weight.mul_(1 + SIZE * torch.randn(weight.shape, generator=generator, dtype=weight.dtype))


def install():
    """From now on every optimiser of torch that is made in this process first touches its weights."""
    import torch

    plain = torch.optim.Optimizer.__init__

    def touched(self, *args, **options):
        plain(self, *args, **options)
        touch([weight for group in self.param_groups for weight in group["params"]])

    torch.optim.Optimizer.__init__ = touched
