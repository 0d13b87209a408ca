#!/usr/bin/python3
"""PyTorch DDP over Gloo on one machine: how many batches a second N processes do together.

    ddp.py --model mlp:10,20,10 --batch 32 --processes 10 --seconds 5
    ddp.py --model vit_b_16 --batch 8 --processes 2 --slots 16 --seconds 20
    ddp.py --model vit_b_16 --write FOLDER       no training: the same model for the pool, scripted, and data for it

A step has --slots batches (by default one a process), of which every process has its share. With more than one it
adds their gradients up (no_sync) and exchanges them with the last. DDP averages gradients, and plain SGD is applied:
what the pool does with as many slots. Data is drawn once and kept in memory, so that nothing but training is
measured, and the first steps are left out.
"""

import argparse
import contextlib
import json
import os
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

BATCHES_DRAWN = 32
SMALL_STEPS = 8  # of a small model are taken between two looks at the clock
LARGE_PARAMETERS = 1_000_000  # where each step takes long
CLASSES, SIDE = 1000, 32  # of vit_b_16


def make_mlp(sizes):
    layers = []
    for index, (inputs, outputs) in enumerate(zip(sizes, sizes[1:])):
        if index > 0:
            layers.append(nn.ReLU())
        layers.append(nn.Linear(inputs, outputs))
    return nn.Sequential(*layers)


def make_model(name):
    """The model, the shape of one sample, and the number of classes."""
    if name == "vit_b_16":
        from torchvision.models import vit_b_16
        return vit_b_16(image_size=SIDE, num_classes=CLASSES), (3, SIDE, SIDE), CLASSES
    sizes = [int(size) for size in name.removeprefix("mlp:").split(",")]
    return make_mlp(sizes), (sizes[0],), sizes[-1]


def write(name, folder):
    import numpy
    torch.manual_seed(0)
    model, shape, classes = make_model(name)
    torch.jit.script(model).save(f"{folder}/vit.pt")
    numpy.save(f"{folder}/images.npy", torch.randn(512, *shape).numpy())
    numpy.save(f"{folder}/labels.npy", torch.randint(classes, (512,)).numpy())


def train(rank, options, store, results):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=options.processes)
    torch.manual_seed(rank)
    plain, shape, classes = make_model(options.model)
    clock_steps = 1 if sum(p.numel() for p in plain.parameters()) > LARGE_PARAMETERS else SMALL_STEPS
    model = nn.parallel.DistributedDataParallel(plain)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss_of = nn.CrossEntropyLoss()
    batches = [(torch.randn(options.batch, *shape), torch.randint(classes, (options.batch,)))
               for _ in range(BATCHES_DRAWN)]
    share = options.slots // options.processes

    def step(number):
        optimizer.zero_grad(set_to_none=True)
        for slot in range(share):
            inputs, targets = batches[(number * share + slot) % BATCHES_DRAWN]
            with contextlib.nullcontext() if slot == share - 1 else model.no_sync():
                (loss_of(model(inputs), targets) / share).backward()
        optimizer.step()

    for number in range(options.warm_up_steps):
        step(number)
    dist.barrier()
    begun = time.monotonic()
    steps = 0
    going = torch.ones(1)
    while True:
        # All stop after the same step: rank 0 looks at the clock, now and then.
        if steps % clock_steps == 0:
            going[0] = float(time.monotonic() - begun < options.seconds)
            dist.broadcast(going, 0)
            if going[0] == 0:
                break
        step(steps)
        steps += 1
    if rank == 0:
        results.put(steps * options.slots / (time.monotonic() - begun))
    dist.barrier()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="mlp:10,20,10", help="mlp:SIZES or vit_b_16, of torchvision")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--processes", type=int, default=10)
    parser.add_argument("--slots", type=int, help="batches a step; a multiple of --processes")
    parser.add_argument("--warm-up-steps", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--write", metavar="FOLDER")
    options = parser.parse_args()
    if options.write:
        return write(options.model, options.write)
    options.slots = options.slots or options.processes
    if options.slots % options.processes != 0:
        parser.error("--slots must be a multiple of --processes")
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # else it asks what address the machine's name has
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    results = mp.get_context("spawn").SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(train, (options, os.path.join(folder, "store"), results), nprocs=options.processes)
    print(json.dumps({"batches_per_second": results.get()}))


if __name__ == "__main__":
    main()
