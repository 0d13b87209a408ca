"""Loads a checkpoint into the model's own class: python3 from_checkpoint.py CHECKPOINT FASHION-MNIST-FOLDER"""

import json
import struct
import sys

import torch

from net import Net
from score import accuracy_of


def read_checkpoint(path):
    """Its tensors by name, and its info."""
    with open(path, "rb") as file:
        header_bytes, = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(header_bytes))
        data = torch.frombuffer(bytearray(file.read()), dtype=torch.float32)
    info = json.loads(header.pop("__metadata__")["info"])
    tensors = {}
    for name, tensor in header.items():
        begin, end = tensor["data_offsets"]
        tensors[name] = data[begin // 4:end // 4].reshape(tensor["shape"])
    return tensors, info


checkpoint, folder = sys.argv[1:]
tensors, info = read_checkpoint(checkpoint)
# Names are GROUP/NAME. A model is its parameters and its buffers (BatchNorm's statistics); the other groups are the
# optimizer's.
groups = ("parameters/", "buffers/")
state = {name.split("/", 1)[1]: tensor for name, tensor in tensors.items() if name.startswith(groups)}
net = Net()
net.load_state_dict(state)

accuracy = accuracy_of(net, folder)
print(f"step {info['step']}: accuracy {info['evaluation_accuracy']:.4f} in the run, {accuracy:.4f} here")
assert abs(accuracy - info["evaluation_accuracy"]) < 0.001
