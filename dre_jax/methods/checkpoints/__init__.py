"""Checkpoints of methods: arrays by Orbax, everything else in JSON. `storage` alone imports orbax."""
