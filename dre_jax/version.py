"""The version of the installed package."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("dre_jax")
except PackageNotFoundError:  # a folder on the path, without an installation
    __version__ = "0+unknown"
