#!/usr/bin/python3
"""PyTorch DDP over Gloo on one machine: how many batches a second N processes do together.

    ddp.py --sizes 10,20,10 --batch 32 --processes 10 --seconds 5

Every process has its own batch each step, gradients are averaged by DDP, and plain SGD is applied: what the pool does
with as many slots as nodes. Data is drawn once and kept in memory, so that nothing but training is measured.
"""

import argparse
import json
import os
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

WARM_UP_STEPS = 5
BATCHES_DRAWN = 32


def make_model(sizes):
    layers = []
    for index, (inputs, outputs) in enumerate(zip(sizes, sizes[1:])):
        if index > 0:
            layers.append(nn.ReLU())
        layers.append(nn.Linear(inputs, outputs))
    return nn.Sequential(*layers)


def train(rank, options, store, results):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=options.processes)
    torch.manual_seed(rank)
    sizes = [int(size) for size in options.sizes.split(",")]
    model = nn.parallel.DistributedDataParallel(make_model(sizes))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss_of = nn.CrossEntropyLoss()
    batches = [(torch.randn(options.batch, sizes[0]), torch.randint(sizes[-1], (options.batch,)))
               for _ in range(BATCHES_DRAWN)]

    def step(number):
        inputs, targets = batches[number % BATCHES_DRAWN]
        optimizer.zero_grad(set_to_none=True)
        loss_of(model(inputs), targets).backward()
        optimizer.step()

    for number in range(WARM_UP_STEPS):
        step(number)
    dist.barrier()
    begun = time.monotonic()
    steps = 0
    going = torch.ones(1)
    while True:
        # All stop after the same step: rank 0 looks at the clock, now and then.
        if steps % 8 == 0:
            going[0] = float(time.monotonic() - begun < options.seconds)
            dist.broadcast(going, 0)
            if going[0] == 0:
                break
        step(steps)
        steps += 1
    if rank == 0:
        results.put(steps * options.processes / (time.monotonic() - begun))
    dist.barrier()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="10,20,10")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--processes", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # else it asks what address the machine's name has
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    results = mp.get_context("spawn").SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(train, (options, os.path.join(folder, "store"), results), nprocs=options.processes)
    print(json.dumps({"batches_per_second": results.get()}))


if __name__ == "__main__":
    main()
