"""The machine: devices and their mesh, processes, threads, compiled programs and their cache, locks."""
