"""The address of the documentation, for the links of HTML representations."""

from sklearn_structsvm._utils.mistakes import ExplainsMistakes

# The site of the latest release. pyproject.toml has the same address.
DOCUMENTATION = "https://sklearn-structsvm.github.io/sklearn-structsvm/stable/"


class DocumentedMixin(ExplainsMistakes):
    """Links the HTML representation to the page of the class; before `BaseEstimator`."""

    _doc_link_module = "sklearn_structsvm"
    _doc_link_template = DOCUMENTATION + "generated/{module}.{name}.html"
    # The module under which the API pages list the class.
    _public_module = "sklearn_structsvm"

    def _doc_link_url_param_generator(self):
        return {"module": self._public_module, "name": type(self).__name__}
