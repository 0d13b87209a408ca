"""A table of 2,000 houses that never were, with their prices: make_table.py houses.csv"""

import csv
import random
import sys

random.seed(1)
KINDS = {"flat": 0.8, "house": 1.0, "villa": 1.6}
with open(sys.argv[1], "w", newline="") as file:
    table = csv.writer(file)
    table.writerow(["id", "kind", "area", "rooms", "garden", "price"])
    for number in range(2000):
        kind = random.choice(list(KINDS))
        area = random.uniform(0.3, 2.5)  # hundreds of square metres: about as large as the other columns
        rooms = max(1, round(4 * area + random.gauss(0, 0.7)))
        garden = random.choice(["yes", "no"])
        price = KINDS[kind] * (1.5 * area + 0.1 * rooms) + (0.4 if garden == "yes" else 0) + random.gauss(0, 0.05)
        table.writerow([number, kind, f"{area:.2f}", rooms, garden, f"{price:.3f}"])
