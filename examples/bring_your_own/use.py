"""What a run exported, in plain PyTorch: use.py trained.pt FOLDER, where the data's .npy files are"""

import sys

import numpy
import torch

file, folder = sys.argv[1:]
words, mask, topics = (torch.from_numpy(numpy.load(f"{folder}/{name}.npy")) for name in ("words", "mask", "topics"))
model = torch.jit.load(file)
with torch.no_grad():
    right = (model(words.long(), mask).argmax(1) == topics).sum().item()
print(f"{right} of {len(topics)} right")
