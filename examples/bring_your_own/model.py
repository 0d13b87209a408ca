"""A model and data of one's own. `model.py net.pt` writes the model as TorchScript, and its data beside it, as .npy.

The model reads a sentence of word numbers, of any length up to 12, with a mask that says which places are words, and
says which of three topics it is about. The files of its data are called as the arguments of forward() are.
"""

import pathlib
import sys

import numpy
import torch
from torch import nn

WORDS, PLACES, TOPICS = 60, 12, 3


class Topics(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, 16)
        self.recurrent = nn.GRU(16, 24, batch_first=True)
        self.topic = nn.Linear(24, TOPICS)

    def forward(self, words, mask):
        states, _ = self.recurrent(self.words(words))
        kept = mask.unsqueeze(2).to(states.dtype)
        return self.topic((states * kept).sum(1) / kept.sum(1))


def make_data(samples: int):
    """Sentences of words from everywhere, a third of them from the topic's own twenty."""
    random = numpy.random.default_rng(1)
    topics = random.integers(0, TOPICS, samples)
    own = 20 * topics[:, None] + random.integers(0, 20, (samples, PLACES))
    words = numpy.where(random.random((samples, PLACES)) < 1 / 3, own, random.integers(0, WORDS, (samples, PLACES)))
    mask = numpy.arange(PLACES) < random.integers(4, PLACES + 1, samples)[:, None]
    return words.astype("int16"), mask, topics


def main():
    file = pathlib.Path(sys.argv[1])
    torch.manual_seed(1)
    torch.jit.script(Topics()).save(str(file))
    for name, array in zip(("words", "mask", "topics"), make_data(4000)):
        numpy.save(file.parent / f"{name}.npy", array)


if __name__ == "__main__":
    main()
