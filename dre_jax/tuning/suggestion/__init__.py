"""One suggestion, as pure functions of a study's arrays: for NumPy on the host and for JAX inside of a program."""
