"""Settings that hold for the whole suite."""

import matplotlib
from hypothesis import settings

# No window is opened, and a figure looks the same on every machine.
matplotlib.use("Agg")

# A failure is found again by running again; how long an example takes is no failure.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
