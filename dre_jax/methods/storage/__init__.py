"""How checkpoints are stored: arrays by Orbax, everything else in JSON. `steps` alone imports orbax."""
