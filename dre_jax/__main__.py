"""``python -m dre_jax``: the command line."""

from dre_jax.cli import main

if __name__ == "__main__":
    main()
