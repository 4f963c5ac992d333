"""Checkpoints of methods: arrays by Orbax, all else in JSON; `storage` alone imports orbax."""
