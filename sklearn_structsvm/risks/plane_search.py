"""Line search over a quadratic plus a risk that is known only by its planes."""

import numpy as np


class PlaneSearch:
    """φ(η) = slope η + curvature/2 η² + R(Z + η D), with R known by its planes."""

    def __init__(self, risk, Z, along, slope, curvature):
        self.risk, self.Z, self.along = risk, Z, along
        self.slope, self.curvature = slope, curvature
        self.scores, self.B = np.empty_like(Z), np.empty_like(Z)

    def look(self, step):
        """(step, height, slope, size): R(η) >= height + slope η, equal at the step.

        At the start it is the steepest one. In a bracket, any will do, and is faster.
        """
        along = self.along if step == 0.0 else None
        scores = self.risk.moved(self.Z, self.along, step, out=self.scores)
        B, offset = self.risk.plane(scores, along, out=self.B)
        product = self.risk.dot(B, self.Z)
        # The size of the terms, which determines their rounding.
        parts = np.abs(self.Z[:, 0]) + step * np.abs(self.along[:, 0])
        size = abs(offset) + float(np.abs(B[:, 0]) @ parts)
        return step, offset + product, self.risk.dot(B, self.along), size

    def rise(self, line):
        """φ' at the line's step."""
        return self.slope + self.curvature * line[0] + line[2]

    def height(self, line, step):
        """The quadratic with this line."""
        return line[1] + step * (line[2] + self.slope + 0.5 * self.curvature * step)

    def bottom(self, line):
        """The step that minimizes the quadratic plus this line."""
        falls = -(self.slope + line[2])
        if self.curvature > 0.0:
            return max(falls / self.curvature, 0.0)
        return np.inf if falls > 0.0 else 0.0

    def run(self, start, largest):
        low = self.look(0.0)
        if self.rise(low) >= 0.0:
            return 0.0
        # Beyond the minimum with a falling line, R does not fall faster.
        trial, high = min(start, self.bottom(low), largest), None
        while True:
            line = self.look(trial)
            if self.rise(line) >= 0.0:
                high = line
                break
            if trial >= min(self.bottom(low), largest):
                return trial
            low = line
            trial = min(2.0 * trial, self.bottom(low), largest)
            if trial <= low[0]:
                return low[0]
        return self.narrow(low, high)

    def narrow(self, low, high):
        before = np.inf
        # Every third plane halves the bracket if the others did not.
        for count in range(200):
            trial = cross = self.crossing(low, high)
            least = max(self.height(line, cross) for line in (low, high))
            width = high[0] - low[0]
            if count % 3 == 2:
                if width > 0.5 * before:
                    trial = low[0] + 0.5 * width
                before = width
            elif count % 3 == 1:
                # If R is nearly smooth, the secant of φ' is much more accurate than
                # lines.
                fall = -self.rise(low)
                trial = low[0] + width * fall / (fall + self.rise(high))
            line = self.look(trial)
            # The rounding error of the sums that both heights consist of.
            rounding = 4.0 * np.finfo(np.float64).eps * line[3]
            if self.height(line, trial) <= least + rounding:
                break
            if not low[0] < trial < high[0]:
                break
            low, high = (low, line) if self.rise(line) >= 0.0 else (line, high)
        return trial

    def crossing(self, low, high):
        """The step that minimizes the quadratic plus the larger of two lines."""
        if not high[2] > low[2]:
            step = self.bottom(low)
        else:
            # Distances from `low`, which are small if the bracket is small.
            gap = low[1] - high[1] + (low[2] - high[2]) * low[0]
            cross = low[0] + gap / (high[2] - low[2])
            # It falls along `low` until it rises, or along `high`; otherwise to the
            # crossing.
            step = min(max(self.bottom(high), cross), self.bottom(low))
        return min(max(step, low[0]), high[0])
