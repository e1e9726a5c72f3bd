"""
More data than memory
=====================

Files that are larger than memory are read in chunks. A sample of the rows is enough to find the network; then it is
checked on all the others.
"""

# %%
# Three parquet files, 60 000 rows, and a limit of two megabytes on what may be in memory.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import pyarrow as pa
import pyarrow.parquet as pq

import relumine as rl

truth = rl.planted.network(d=8, m=4, rng=0)
folder = Path(tempfile.mkdtemp())
for part in range(3):
    X, y = rl.planted.sample(truth, n=20_000, rng=part)
    columns = {f"x{j}": X[:, j] for j in range(8)} | {"y": y}
    pq.write_table(pa.table(columns), folder / f"part-{part}.parquet")

found = rl.recover(str(folder / "part-*.parquet"), target="y", width=4, rng=0, memory=2e6)
print(found.status.value, f"{rl.metrics.parameter_error(truth, found.network):.0e}")
print(f"found from {found.search.rows_searched} rows; {found.search.rows} in all were checked")

# %%
# Where the time went.

figure, axes = plt.subplots(figsize=(6, 2.6), layout="constrained")
names = [stage.name for stage in found.stages]
axes.barh(range(len(names)), [stage.seconds for stage in found.stages])
axes.set_yticks(range(len(names)), names)
axes.invert_yaxis()
axes.set(xlabel="seconds")
