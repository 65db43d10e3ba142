"""What tables of pandas, polars and Arrow have in common."""


def column_names(table):
    """Names of the columns of a table, or None for what is none."""
    columns = getattr(table, "column_names", getattr(table, "columns", None))
    return None if columns is None or not hasattr(table, "shape") else list(columns)
