#!/usr/bin/python3
"""Models as people bring them, and what a plain PyTorch loop trains them to.

    reference.py make KIND     writes net.pt and the data's .npy files here; KIND is resnet18, transformer or lstm
    reference.py check KIND    trains the model of net.pt as course.json says, and compares parameters and buffers with
                               trained.pt, and trained.pt's outputs with outputs.npy

course.json has `learning_rate`, `momentum` and `steps`. A step is a list of slots, each with its `samples` and the
`seed` of what it draws.
"""

import json
import sys

import numpy
import torch
import torchvision
from torch import nn

SAMPLES, CLASSES, PIXELS = 240, 10, 32
VOCABULARY, TOKENS, WIDTH = 40, 12, 32
FAR = 1e-5


class Transformer(nn.Module):
    """Its output layer is its embedding, which is one parameter."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Parameter(0.02 * torch.randn(TOKENS, WIDTH))
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.1, activation="gelu", batch_first=True,
                                           norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        # As torch.nn.Transformer makes it: a buffer, with infinities.
        self.register_buffer("later", torch.full((TOKENS, TOKENS), float("-inf")).triu(1))
        nn.init.normal_(self.tokens.weight, std=0.1)
        self.head.weight = self.tokens.weight

    def forward(self, ids):
        return self.head(self.norm(self.encoder(self.tokens(ids) + self.positions, self.later)))


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.lstm = nn.LSTM(WIDTH, WIDTH, 2, batch_first=True, dropout=0.1)
        self.last = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, ids):
        return self.last(self.lstm(self.embedding(ids))[0])


def resnet18():
    # Otherwise a fresh one is so steep that a difference of 1e-7 becomes one of 1e-4 in five steps, in any two loops.
    return torchvision.models.resnet18(num_classes=CLASSES, zero_init_residual=True)


KINDS = {"resnet18": resnet18, "transformer": Transformer, "lstm": Lstm}


def make(kind):
    torch.manual_seed(1)
    torch.jit.script(KINDS[kind]()).save("net.pt")
    random = numpy.random.RandomState(2)
    if kind == "resnet18":
        # Noise of every pixel by itself would look the same to the last layers.
        coarse = torch.from_numpy(random.rand(SAMPLES, 3, 4, 4))
        images = nn.functional.interpolate(255 * coarse, size=(PIXELS, PIXELS), mode="bilinear")
        numpy.save("inputs.npy", images.round().byte().numpy())
        numpy.save("targets.npy", random.randint(0, CLASSES, SAMPLES))
    else:
        ids = random.randint(0, VOCABULARY, (SAMPLES, TOKENS + 1)).astype("i2")
        numpy.save("inputs.npy", ids[:, :-1])
        numpy.save("targets.npy", ids[:, 1:])


def read_data():
    inputs, targets = (torch.from_numpy(numpy.load(name + ".npy")) for name in ("inputs", "targets"))
    return (inputs / 255 if inputs.dtype == torch.uint8 else inputs.long()), targets.long()


def loss_of(outputs, targets):
    return nn.functional.cross_entropy(outputs.flatten(0, -2), targets.flatten())


def train(model, course):
    """A step is one of the optimizer, on the mean over its samples; each slot is a micro-batch of it."""
    inputs, targets = read_data()
    optimizer = torch.optim.SGD(model.parameters(), course["learning_rate"], course["momentum"])
    model.train()
    for step in course["steps"]:
        optimizer.zero_grad()
        total = sum(len(slot["samples"]) for slot in step)
        before = {name: value.clone() for name, value in model.named_buffers()}
        after = {name: torch.zeros_like(value, dtype=torch.float64) for name, value in before.items()}
        for slot in step:
            part = len(slot["samples"]) / total
            for name, value in model.named_buffers():
                value.copy_(before[name])
            torch.manual_seed(slot["seed"])
            (part * loss_of(model(inputs[slot["samples"]]), targets[slot["samples"]])).backward()
            for name, value in model.named_buffers():
                after[name] += part * value
        # BatchNorm's statistics: each slot's own, and their mean.
        for name, value in model.named_buffers():
            value.copy_(after[name].round() if value.dtype == torch.int64 else after[name])
        optimizer.step()


def together(tensors):
    return torch.cat([tensor.detach().flatten().double() for tensor in tensors])


def check(kind):
    torch.set_num_threads(1)
    model = KINDS[kind]()
    model.load_state_dict(torch.jit.load("net.pt").state_dict())
    begun = together(model.parameters())
    with open("course.json") as file:
        train(model, json.load(file))
    trained = torch.jit.load("trained.pt")
    pool = trained.state_dict()
    problems = []

    def compare(what, here, there):
        """Euclidean distances, of all numbers together; what is infinite has to be the same."""
        differs = here != there
        far = ((here - there)[differs].norm() / there[there.isfinite()].norm()).item() if differs.any() else 0.0
        if not far <= FAR:
            problems.append(f"{what} are {far:.1e} apart")

    ended = together(model.parameters())
    parameters = together(pool[name] for name, _ in model.named_parameters())
    compare("parameters", parameters, ended)
    if not (parameters - ended).norm() <= 0.01 * (ended - begun).norm():
        problems.append("parameters are not where training moved them")
    if any(True for _ in model.buffers()):
        compare("buffers", together(pool[name] for name, _ in model.named_buffers()), together(model.buffers()))
    trained.eval()
    with torch.no_grad():
        outputs = trained(read_data()[0])
    compare("outputs and those of w5xde eval", outputs, torch.from_numpy(numpy.load("outputs.npy")))
    if problems:
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    {"make": make, "check": check}[sys.argv[1]](sys.argv[2])
