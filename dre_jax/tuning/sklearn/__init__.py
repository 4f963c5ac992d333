"""`DRESearchCV`: this library's search with scikit-learn's interface (extra `sklearn`)."""

from dre_jax.errors import MissingExtraError

try:
    from dre_jax.tuning.sklearn.search import DRESearchCV
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "sklearn":
        raise
    raise MissingExtraError("scikit-learn", "sklearn") from error

__all__ = ["DRESearchCV"]
