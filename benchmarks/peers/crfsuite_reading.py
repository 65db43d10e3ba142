"""CRFsuite reads the sentences of a JSON file; run where python-crfsuite is installed.

Prints a JSON line: CPU seconds, and how much the peak of memory grew in megabytes.
"""

import json
import sys
from pathlib import Path
from time import process_time

import pycrfsuite


def memory(field):
    """Resident memory of this process in megabytes, now or at its highest (Linux)."""
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"{field}:")[1].split()[0]) / 2**10


with open(sys.argv[1], encoding="utf8") as file:
    X, y = json.load(file)
trainer = pycrfsuite.Trainer(verbose=False)
before, start = memory("VmRSS"), process_time()
for sentence, tags in zip(X, y, strict=True):
    trainer.append(sentence, tags)
seconds = process_time() - start
print(json.dumps({"seconds": seconds, "grown_mb": memory("VmHWM") - before}))
