"""The sweeper ``dre`` of Hydra: `python train.py -m hydra/sweeper=dre 'lr=tag(log, interval(1e-5, 0.1))'`.

Hydra imports this file whenever an application of Hydra starts. It therefore imports `dre_jax` for a sweep only.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.plugins import Plugins
from hydra.errors import CompactHydraException
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf


@dataclass
class DRESweeperConf:
    """The configuration, ``hydra.sweeper``."""

    _target_: str = "hydra_plugins.hydra_dre_sweeper.DRESweeper"
    params: Any = None
    """Search space and fixed overrides by key: ``{lr: "tag(log, interval(1e-5, 0.1))"}``."""
    direction: Any = "minimize"
    """"minimize" or "maximize"; a list, or a mapping of names, if the function returns several values."""
    n_trials: int = 30
    """Number of jobs, those of an interrupted sweep in the same folder included."""
    n_jobs: int = 1
    """Number of jobs that the launcher gets at once."""
    past: Any = None
    """What the sweep learns from: a study file or a list of them, a table in CSV, or the checkpoint of a surrogate."""
    seed: Any = None
    """Of the suggestions. Default: 0."""
    max_failure_rate: float = 1.0
    """Share of failed jobs in a batch above which the sweep ends with the error of a job. Default: it never does."""


class DRESweeper(Sweeper):
    """A sweeper whose jobs are the trials of a study in the folder of the sweep."""

    def __init__(self, params: Any = None, **options: Any) -> None:
        self._params = _plain(params)
        self._options = {name: _plain(value) for name, value in options.items()}

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Creates the launcher."""
        self.config, self.hydra_context = config, hydra_context
        self._folder = Path(config.hydra.sweep.dir)
        self.launcher: Any = Plugins.instance().instantiate_launcher(
            config=config, hydra_context=hydra_context, task_function=task_function
        )

    def sweep(self, arguments: list[str]) -> None:
        """Runs the jobs."""
        from dre_jax.errors import DreError
        from dre_jax.tuning.hydra.overrides import parse_overrides
        from dre_jax.tuning.hydra.sweep import SweepConfig, run_sweep

        try:
            overrides, config = parse_overrides(arguments, self._params), SweepConfig(**self._options)
            run_sweep(self._folder, overrides, config, self._launch)
        except DreError as error:
            raise CompactHydraException(f"dre_jax: {error}") from error

    def _launch(self, overrides: Any, first_number: int) -> Any:
        self.validate_batch_is_legal(overrides)
        return self.launcher.launch(overrides, initial_job_idx=first_number)


def _plain(value: Any) -> Any:
    """Returns a part of a configuration as objects of Python."""
    return OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value


ConfigStore.instance().store(group="hydra/sweeper", name="dre", node=DRESweeperConf, provider="dre_jax")
