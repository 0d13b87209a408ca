"""A regression problem as NumPy files: python3 table.py writes x.npy and y.npy"""

import numpy

random = numpy.random.default_rng(1)
x = random.normal(size=(4000, 8)).astype("float32")
y = (numpy.sin(x[:, 0]) + x[:, 1] * x[:, 2] + 0.1 * random.normal(size=4000)).astype("float32")
numpy.save("x.npy", x)
numpy.save("y.npy", y)
