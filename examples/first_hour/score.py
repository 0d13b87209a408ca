"""Scores trained weights in plain PyTorch: python3 score.py trained.pt FASHION-MNIST-FOLDER"""

import gzip
import sys

import torch

from net import Net


def read(path, header_bytes):
    with gzip.open(path) as file:
        return torch.frombuffer(bytearray(file.read()[header_bytes:]), dtype=torch.uint8)


def accuracy_of(net, folder):
    images = read(f"{folder}/t10k-images-idx3-ubyte.gz", 16).view(-1, 1, 28, 28) / 255
    labels = read(f"{folder}/t10k-labels-idx1-ubyte.gz", 8)
    net.eval()
    with torch.no_grad():
        return (net(images).argmax(1) == labels).float().mean().item()


if __name__ == "__main__":
    file, folder = sys.argv[1:]
    net = Net()
    net.load_state_dict(torch.jit.load(file).state_dict())
    print(f"accuracy {accuracy_of(net, folder):.4f}")
