#!/usr/bin/python3
"""make_references.py FOLDER: what PyTorch's own layers compute where the engine has a model by name.

A file for each model: its parameters and buffers by the engine's names, inputs, targets, the loss, the gradient of the
loss by "gradient/NAME", and outputs in evaluation.
"""

import pathlib
import sys

import torch
from torch import nn

from make_models import write_safetensors

VOCABULARY, TOKENS, WIDTH, HEADS, LAYERS, SAMPLES = 11, 6, 8, 2, 2, 3
CHANNELS, HEIGHT, ACROSS, PATCH, CLASSES = 3, 8, 12, 4, 5


def encoder(epsilon):
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.0, activation="gelu", batch_first=True,
                                       norm_first=True, layer_norm_eps=epsilon)
    return nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(TOKENS, WIDTH)
        self.encoder = encoder(1e-5)
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, inputs):
        values = self.tokens(inputs) + self.positions(torch.arange(TOKENS))
        later = torch.full((TOKENS, TOKENS), float("-inf")).triu(1)
        return self.norm(self.encoder(values, mask=later)) @ self.tokens.weight.t()


class Vit(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(CHANNELS, WIDTH, PATCH, stride=PATCH)
        self.class_token = nn.Parameter(torch.randn(1, 1, WIDTH))
        count = (HEIGHT // PATCH) * (ACROSS // PATCH)
        self.positions = nn.Parameter(torch.randn(1, count + 1, WIDTH))
        self.encoder = encoder(1e-6)
        self.norm = nn.LayerNorm(WIDTH, eps=1e-6)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, inputs):
        pieces = self.patches(inputs).flatten(2).transpose(1, 2)
        values = torch.cat([self.class_token.expand(len(inputs), 1, WIDTH), pieces], 1) + self.positions
        return self.head(self.norm(self.encoder(values))[:, 0])


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.lstm = nn.LSTM(WIDTH, WIDTH, LAYERS, batch_first=True)
        self.linear = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, inputs):
        return self.linear(self.lstm(self.embedding(inputs))[0])


class Block(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        self.downsample = nn.Identity()
        if before != after:
            self.downsample = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, inputs):
        values = torch.relu(self.bn1(self.conv1(inputs)))
        return torch.relu(self.bn2(self.conv2(values)) + self.downsample(inputs))


class ResNet18(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(CHANNELS, 64, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.layer1 = nn.Sequential(Block(64, 64, 1), Block(64, 64, 1))
        self.layer2 = nn.Sequential(Block(64, 128, 2), Block(128, 128, 1))
        self.layer3 = nn.Sequential(Block(128, 256, 2), Block(256, 256, 1))
        self.layer4 = nn.Sequential(Block(256, 512, 2), Block(512, 512, 1))
        self.fc = nn.Linear(512, CLASSES)

    def forward(self, inputs):
        values = torch.relu(self.bn1(self.conv1(inputs)))
        values = self.layer4(self.layer3(self.layer2(self.layer1(values))))
        return self.fc(values.mean((2, 3)))


# Beginnings of names here, and what the engine has in their place.
GPT_NAMES = {"tokens.": "transformer.wte.", "positions.": "transformer.wpe.", "norm.": "transformer.ln_f.",
             "encoder.layers.": "transformer.h.", "self_attn.in_proj_": "attn.c_attn.",
             "self_attn.out_proj.": "attn.c_proj.", "linear1.": "mlp.c_fc.", "linear2.": "mlp.c_proj.",
             "norm1.": "ln_1.", "norm2.": "ln_2."}
VIT_NAMES = {"patches.": "conv_proj.", "positions": "encoder.pos_embedding", "norm.": "encoder.ln.",
             "head.": "heads.head.", "encoder.layers.": "encoder.layers.encoder_layer_",
             "self_attn.": "self_attention.", "linear1.": "mlp.0.", "linear2.": "mlp.3.", "norm1.": "ln_1.",
             "norm2.": "ln_2."}


def renamed(name, names):
    for here, there in names.items():
        if name.startswith(here):
            name = there + name.removeprefix(here)
        else:
            name = name.replace("." + here, "." + there)
    return name


def write(path, model, inputs, targets, names):
    # Weights that matter: with the initial ones a wrong norm would hardly show.
    for name, parameter in model.named_parameters():
        nn.init.normal_(parameter, 1.0 if "norm" in name or "bn" in name else 0.0, 0.3 if parameter.dim() < 4 else 0.05)
    model.train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    outputs = model(inputs)
    # The mean over a sample's tokens, added up over samples.
    loss = nn.functional.cross_entropy(outputs.flatten(0, -2), targets.flatten(), reduction="sum")
    loss = loss / (targets.numel() / len(targets))
    loss.backward()
    tensors = {"inputs": inputs, "targets": targets, "loss": loss.detach().reshape(1)}
    for name, parameter in model.named_parameters():
        tensors["gradient/" + renamed(name, names)] = parameter.grad
    for name, value in before.items():
        tensors[renamed(name, names)] = value
    model.load_state_dict(before)
    model.eval()
    # With gradients on: without, PyTorch's transformer layers take another path, of other roundings.
    tensors["outputs"] = model(inputs).detach()
    write_safetensors(path, tensors)


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(9)
    tokens = torch.randint(0, VOCABULARY, (SAMPLES, TOKENS + 1))
    images = torch.randn(SAMPLES, CHANNELS, HEIGHT, ACROSS)
    classes = torch.randint(0, CLASSES, (SAMPLES,))
    write(folder / "gpt.safetensors", Gpt(), tokens[:, :-1], tokens[:, 1:], GPT_NAMES)
    write(folder / "lstm.safetensors", Lstm(), tokens[:, :-1], tokens[:, 1:], {})
    write(folder / "vit.safetensors", Vit(), images, classes, VIT_NAMES)
    write(folder / "resnet18.safetensors", ResNet18(), images, classes, {})


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
