"""The two hinges of one wrong output, against how far it is behind the true one."""

import matplotlib.pyplot as plt
import numpy as np

LOSSES = 1, 2, 4
ahead = np.linspace(-1, 5, 301)

fig, axes = plt.subplots(1, 2, figsize=(7, 3.1), layout="constrained", sharey=True)
for color, loss in enumerate(LOSSES):
    for ax, hinge in zip(axes, (loss - ahead, loss * (1 - ahead)), strict=True):
        style = {"color": f"C{color}", "linestyle": ("-", "--", "-.")[color]}
        ax.plot(ahead, np.maximum(hinge, 0), label=f"L = {loss}", **style)
        ax.plot([0], [loss], "o", color=f"C{color}", markersize=4)
for ax, title in zip(
    axes, ("margin rescaling: L - d", "slack rescaling: L (1 - d)"), strict=True
):
    ax.set_title(title, fontsize="medium")
    ax.set(xlabel="d = f(y_true) - f(y), the true output's lead", ylim=(0, 8.2))
    ax.axvline(0, color="0.5", linewidth=0.8)
axes[0].set_ylabel("hinge of the wrong output y")
axes[1].legend(title="its loss")
