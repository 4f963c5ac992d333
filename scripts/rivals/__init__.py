"""Rivals: tuners of other libraries, each as its users set it up, and the tasks that they are compared on."""
