#!/usr/bin/python3
"""Makes gradients.safetensors: what a LeNet's gradients on Fashion-MNIST look like, early and late in training.

The benches of the codecs run on this file, because noise does not compress and zeros compress too well. Needs the
Debian packages python3-torch and dataset-fashion-mnist; run from anywhere, writes beside itself.
"""

import gzip
import json
import pathlib
import struct

import torch

DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")
STEPS = (10, 600)


def read_idx(name, header):
    return torch.frombuffer(bytearray(gzip.open(DATA / name).read()[header:]), dtype=torch.uint8)


def lenet():
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 6, 5, padding=2), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(6, 16, 5), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(),
        torch.nn.Linear(400, 120), torch.nn.ReLU(), torch.nn.Linear(120, 84), torch.nn.ReLU(), torch.nn.Linear(84, 10))


def main():
    torch.manual_seed(1)
    images = read_idx("train-images-idx3-ubyte.gz", 16).view(-1, 1, 28, 28).float() / 255
    labels = read_idx("train-labels-idx1-ubyte.gz", 8).long()
    model = lenet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    header, data = {}, b""
    for step in range(1, max(STEPS) + 1):
        batch = torch.randint(len(images), (64,))
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images[batch]), labels[batch]).backward()
        if step in STEPS:
            flat = torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
            raw = flat.numpy().tobytes()
            header[f"step_{step}"] = {"dtype": "F32", "shape": [flat.numel()],
                                      "data_offsets": [len(data), len(data) + len(raw)]}
            data += raw
        optimizer.step()
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % 64)
    path = pathlib.Path(__file__).with_name("gradients.safetensors")
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


if __name__ == "__main__":
    main()
