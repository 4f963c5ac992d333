"""Work for another process, which imports this file alone and so starts at once."""

import os
import signal
import time


def work(what):
    """Does what a test wants of the process."""
    if what == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "hang":
        os.fork()  # a process of its own, which hangs too
        time.sleep(600)
    if what == "raise":
        raise ValueError("no memory\nat all")
    return os.getpid(), os.environ.get("DRE_JAX_CUDA")
