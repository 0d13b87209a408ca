"""A small convolutional network with BatchNorm, saved as TorchScript: python3 net.py net.pt [weights.pth]"""

import sys

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2))
        self.classify = nn.Linear(16 * 7 * 7, 10)

    def forward(self, images):
        return self.classify(self.features(images).flatten(1))


if __name__ == "__main__":
    torch.manual_seed(1)
    net = Net()
    if len(sys.argv) > 2:  # a state dict that torch.save wrote: training begins with it
        net.load_state_dict(torch.load(sys.argv[2]))
    torch.jit.script(net).save(sys.argv[1])
