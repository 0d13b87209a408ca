#!/usr/bin/python3
"""make_models.py FOLDER: the TorchScript files that the engine's tests read, and what plain PyTorch trains them to."""

import json
import pathlib
import struct
import sys

import torch
from torch import nn

STEPS = 50
BATCH = 24


class Mixed(nn.Module):
    """Tied weights, a frozen layer, BatchNorm, and dropout if asked for: 8 numbers in, 5 classes out."""

    def __init__(self, dropout):
        super().__init__()
        # A bias before a BatchNorm has no gradient but rounding, which Adam would blow up to whole steps.
        self.first = nn.Linear(8, 12, bias=False)
        self.norm = nn.BatchNorm1d(12)
        self.middle = nn.Linear(12, 12)
        self.again = nn.Linear(12, 12)
        self.again.weight = self.middle.weight
        self.drop = nn.Dropout(dropout)
        self.frozen = nn.Linear(12, 12)
        for parameter in self.frozen.parameters():
            parameter.requires_grad = False
        self.last = nn.Linear(12, 5)
        self.register_buffer("scales", torch.tensor([1, 2], dtype=torch.int32))

    def forward(self, inputs):
        values = torch.tanh(self.norm(self.first(inputs)))
        values = torch.tanh(self.again(torch.tanh(self.middle(values))))
        return self.last(torch.relu(self.frozen(self.drop(values)))) * self.scales[0]


class OwnLoss(nn.Module):
    """The mean over samples of an absolute error: 6 numbers in, 3 floats as targets."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 3)

    def forward(self, inputs, targets):
        return (self.layer(inputs) - targets).abs().sum(1).mean()


class OwnClasses(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 4)

    def forward(self, inputs, targets):
        return nn.functional.cross_entropy(self.layer(inputs), targets)


class Rebinds(nn.Module):
    """Puts a new tensor in the place of its buffer instead of changing it."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 5)
        self.register_buffer("average", torch.ones(8))

    def forward(self, inputs):
        if self.training:
            self.average = 0.5 * self.average + 0.5 * inputs.mean(0)
        return self.layer(inputs - self.average)


class Remembers(nn.Module):
    """Changes, in forward, something that is neither a parameter nor a buffer of floats."""

    def __init__(self, what: str):
        super().__init__()
        self.what = what
        self.layer = nn.Linear(8, 5)
        self.frozen = nn.Linear(8, 8)
        for parameter in self.frozen.parameters():
            parameter.requires_grad = False
        self.calls = 0
        self.seen = [0]
        self.last = torch.zeros(8)
        self.register_buffer("histogram", torch.zeros(4, dtype=torch.int32))
        self.register_buffer("average", torch.zeros(8, dtype=torch.float64))

    def forward(self, inputs):
        if self.what == "counter":
            self.calls += 1
        if self.what == "list":
            self.seen.append(inputs.shape[0])
        if self.what == "tensor":
            self.last = inputs[0]
        if self.what == "tensor in place":
            self.last += inputs[0]
        if self.what == "integers":
            self.histogram += 1
        if self.what == "doubles":
            self.average.copy_(inputs.mean(0))
        if self.what == "parameter":
            self.layer.weight.data.mul_(0.5)
        if self.what == "frozen parameter":
            self.frozen.weight.add_(1.0)
        if self.what == "in evaluation" and not self.training:
            self.calls += 1
        return self.layer(self.frozen(inputs))


REMEMBERS = ["nothing", "counter", "list", "tensor", "tensor in place", "integers", "doubles", "parameter",
             "frozen parameter", "in evaluation"]


class Sometimes(nn.Module):
    """Three layers: one that every batch uses, one that batches with a positive sum use, one that none uses."""

    def __init__(self):
        super().__init__()
        self.always = nn.Linear(8, 5)
        self.sometimes = nn.Linear(8, 5)
        self.never = nn.Linear(8, 5)
        # Its first gradients are zeros, which is not the same as none.
        nn.init.zeros_(self.sometimes.weight)

    def forward(self, inputs):
        outputs = self.always(inputs) + self.never(inputs).detach()
        if bool(inputs.sum() > 0):
            outputs = outputs + self.sometimes(inputs)
        return outputs


class SometimesDrops(nn.Module):
    """Draws random numbers for batches with a positive sum."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 5)

    def forward(self, inputs):
        if bool(inputs.sum() > 0):
            inputs = nn.functional.dropout(inputs, 0.5, self.training)
        return self.layer(inputs)


class Noisy(nn.Module):
    """Draws random numbers in evaluation, too."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 5)

    def forward(self, inputs):
        outputs = self.layer(inputs)
        return outputs + torch.randn_like(outputs)


class Spoils(nn.Module):
    """Batches with a positive sum overwrite what backward() needs, behind a layer whose gradient is made before."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.last = nn.Linear(8, 5)

    def forward(self, inputs):
        values = torch.exp(self.first(inputs))
        outputs = self.last(values * 2)
        if bool(inputs.sum() > 0):
            values.add_(1.0)
            outputs = outputs + 0.0 * values.sum()
        return outputs


def normalised():
    return nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 16), nn.GroupNorm(4, 16),
                         nn.ReLU(), nn.Linear(16, 5))


class Bag(nn.Module):
    """The sum of embeddings of four ids: four classes."""

    def __init__(self, sparse: bool):
        super().__init__()
        torch.manual_seed(11)
        self.embedding = nn.Embedding(9, 4, sparse=sparse)

    def forward(self, ids):
        return self.embedding(ids).sum(1)


class Recurrent(nn.Module):
    """[4, 6] in: four steps of six numbers."""

    def __init__(self):
        super().__init__()
        self.cell = nn.LSTM(6, 7, batch_first=True)
        self.last = nn.Linear(7, 5)

    def forward(self, inputs):
        outputs, _ = self.cell(inputs)
        return self.last(outputs[:, -1])


class Language(nn.Module):
    """[T] ids in, a row of the vocabulary for each out: from the ids so far, weighted alike."""

    def __init__(self, vocabulary: int, width: int, second: bool):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.middle = nn.Linear(2 * width, width)
        self.last = nn.Linear(width, vocabulary)
        self.second = second

    def forward(self, ids):
        here = self.embedding(ids)
        count = torch.arange(1, here.size(1) + 1, dtype=here.dtype).unsqueeze(1)
        values = torch.tanh(self.middle(torch.cat((here, here.cumsum(1) / count), 2)))
        outputs = self.last(values)
        return outputs.transpose(1, 2) if self.second else outputs


class Masked(nn.Module):
    """The mean embedding of those tokens that the mask leaves, plus a number: three classes."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(9, 4)
        self.last = nn.Linear(5, 3)

    def forward(self, mask, tokens, number, scale: float = 2.0):
        values = self.embedding(tokens).masked_fill(torch.logical_not(mask).unsqueeze(2), 0.0).sum(1)
        return self.last(torch.cat((values, number.unsqueeze(1) * scale), 1))


class NamedLoss(nn.Module):
    """Targets first, by name."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 3)

    def forward(self, wanted, numbers):
        return ((self.layer(numbers) - wanted) ** 2).sum(1).mean()


def convolution():
    return nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(3 * 6 * 6, 5))


def write_safetensors(path, tensors):
    header, place = {}, 0
    for name, tensor in tensors.items():
        size = tensor.numel() * tensor.element_size()
        dtype = {torch.float32: "F32", torch.int64: "I64"}[tensor.dtype]
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [place, place + size]}
        place += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            file.write(tensor.contiguous().numpy().tobytes())


def train(make_optimizer, inputs, targets):
    """Every tensor of the model after STEPS steps, one batch each."""
    torch.manual_seed(7)
    model = Mixed(0.0)
    optimizer = make_optimizer([p for p in model.parameters() if p.requires_grad])
    for step in range(STEPS):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs[step]), targets[step]).backward()
        optimizer.step()
    return {name: value.detach() for name, value in model.state_dict().items() if value.dtype == torch.float32}


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(7)
    torch.jit.script(Mixed(0.0)).save(str(folder / "mixed.pt"))
    torch.jit.script(Mixed(0.5)).save(str(folder / "dropout.pt"))
    torch.jit.script(OwnLoss()).save(str(folder / "own_loss.pt"))
    torch.jit.script(OwnClasses()).save(str(folder / "own_classes.pt"))
    torch.jit.script(Rebinds()).save(str(folder / "rebinds.pt"))
    for what in REMEMBERS:
        torch.jit.script(Remembers(what)).save(str(folder / f"remembers_{what.replace(' ', '_')}.pt"))
    torch.jit.script(Sometimes()).save(str(folder / "sometimes.pt"))
    torch.jit.script(SometimesDrops()).save(str(folder / "sometimes_drops.pt"))
    torch.jit.script(Noisy()).save(str(folder / "noisy.pt"))
    torch.jit.script(Recurrent()).save(str(folder / "recurrent.pt"))
    torch.jit.script(convolution()).save(str(folder / "convolution.pt"))
    torch.jit.script(Language(11, 6, second=False)).save(str(folder / "language.pt"))
    torch.jit.script(Language(11, 6, second=True)).save(str(folder / "language_second.pt"))
    torch.jit.script(Language(256, 16, second=False)).save(str(folder / "bytes.pt"))
    torch.jit.script(Masked()).save(str(folder / "masked.pt"))
    torch.jit.script(NamedLoss()).save(str(folder / "named_loss.pt"))
    torch.jit.script(nn.Conv2d(1, 3, 3, padding=1)).save(str(folder / "per_pixel.pt"))
    torch.jit.script(nn.Linear(6, 3)).save(str(folder / "linear.pt"))
    torch.jit.script(nn.Linear(8, 5).double()).save(str(folder / "double.pt"))
    torch.jit.script(Spoils()).save(str(folder / "spoils.pt"))
    torch.jit.script(normalised()).save(str(folder / "normalised.pt"))
    torch.jit.script(Bag(sparse=True)).save(str(folder / "sparse.pt"))
    torch.jit.script(Bag(sparse=False)).save(str(folder / "dense.pt"))
    (folder / "text.pt").write_text("not a TorchScript file\n")

    torch.manual_seed(8)
    inputs, targets = torch.randn(STEPS, BATCH, 8), torch.randint(0, 5, (STEPS, BATCH))
    tensors = {"targets": targets, "inputs": inputs}
    optimizers = {
        "sgd": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01),
        "adamw": lambda p: torch.optim.AdamW(p, lr=0.003, weight_decay=0.02),
    }
    for name, make_optimizer in optimizers.items():
        for key, value in train(make_optimizer, inputs, targets).items():
            tensors[f"{name}/{key}"] = value
    write_safetensors(folder / "trained.safetensors", tensors)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
