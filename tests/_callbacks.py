"""A callback of scikit-learn 1.9 for the tests."""


class Recorder:
    """Records its calls; it asks to end at pass `stop`, and raises at pass `fail`."""

    def __init__(self, stop=None, fail=None, error=None):
        self.stop, self.fail, self.error = stop, fail, error
        self.begun, self.ended, self.fitted = [], [], []
        self.set_up = self.torn_down = 0

    @property
    def passes(self):
        return len([name for name in self.ended if name == "pass"])

    def setup(self, estimator, context):
        self.set_up += 1

    def teardown(self, estimator, context):
        self.torn_down += 1

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
        self.begun.append(context.task_name)

    def on_fit_task_end(
        self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None
    ):
        self.ended.append(context.task_name)
        if context.task_name != "pass":
            return False
        self.data, self.metadata = (X, y), metadata
        self.fitted.append(fitted_estimator)
        if self.passes == self.fail:
            raise self.error
        return self.passes == self.stop
