"""What a fit tells while it runs: scikit-learn's callbacks and `verbose`."""


class PassReporter:
    """Reports each pass of a solver to the callbacks of an estimator.

    Parameters
    ----------
    estimator : estimator with CallbackSupportMixin
    data : dict
        X, y and metadata, handed to the callbacks.
    snapshot : callable
        () -> dict of the fitted attributes that the estimator would have now.
    """

    def __init__(self, estimator, data, snapshot):
        self.estimator = estimator
        self.data = data
        self.snapshot = snapshot
        self.listened = bool(getattr(estimator, "_skl_callbacks", None))
        self.root = estimator._init_callback_context(max_subtasks=estimator.max_iter)
        self.task = None

    def begin(self):
        if self.listened:
            self.root.call_on_fit_task_begin(estimator=self.estimator, **self.data)
            self._next_task()

    def __call__(self, n_iter, row, done):
        """After a pass, the last one where `done`; whether a callback asks to stop.

        `row` is the last one of the history, None before the first.
        """
        name = type(self.estimator).__name__
        if self.estimator.verbose and row is not None and row["n_iter"] == n_iter:
            print(
                f"[{name}] pass {n_iter}, {row['seconds']:.1f} s: "
                f"objective {row['objective']:.6g}, duality gap {row['dual_gap']:.3g}"
            )
        if not self.listened:
            return False
        stop = self.task.call_on_fit_task_end(
            estimator=self.estimator,
            reconstruction_attributes=self.snapshot(),
            **self.data,
        )
        if not (stop or done):
            self._next_task()
        return bool(stop)

    def end(self):
        if self.listened:
            self.root.call_on_fit_task_end(
                estimator=self.estimator,
                reconstruction_attributes=self.snapshot(),
                **self.data,
            )

    def _next_task(self):
        self.task = self.root.subcontext(task_name="pass")
        self.task.call_on_fit_task_begin(estimator=self.estimator, **self.data)
