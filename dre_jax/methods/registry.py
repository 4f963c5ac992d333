"""Methods by name."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from dre_jax.errors import ConfigError
from dre_jax.methods import ensembles
from dre_jax.methods.entry import Entry, later
from dre_jax.methods.options import Options

__all__ = ["METHODS", "Entry", "Options", "find"]

_DRE_PAPER = "Khazi, Pineda Arango and Grabocka 2023"


def _ensembles() -> Iterator[Entry]:
    """Deep ranking ensembles."""
    yield Entry(
        name="dre",
        summary="deep ranking ensemble, meta-trained and fine-tuned before every trial",
        paper=_DRE_PAPER,
        transfer=True,
        build=ensembles.dre,
        reads_checkpoints=True,
    )
    yield Entry(
        name="dre-paper",
        summary="the same with the paper's choices: one deep set, expected improvement, 1000 epochs at 0.001",
        paper=_DRE_PAPER,
        transfer=True,
        build=ensembles.dre_paper,
        reads_checkpoints=True,
    )
    yield Entry(
        name="dre-no-finetune",
        summary="deep ranking ensemble, meta-trained, not fine-tuned",
        paper=_DRE_PAPER,
        transfer=True,
        build=ensembles.dre_no_finetune,
        reads_checkpoints=True,
    )
    yield Entry(
        name="dre-ri",
        summary="deep ranking ensemble from random weights at every trial",
        paper=_DRE_PAPER,
        transfer=False,
        build=ensembles.dre_ri,
    )
    yield Entry(
        name="dre-gp",
        summary="Gaussian process around what a deep ranking ensemble expects; this library's own",
        paper="this library",
        transfer=True,
        build=later("dre_gp:build"),
        reads_checkpoints=True,
    )
    yield Entry(
        name="committee",
        summary="dre-gp and fsbo vote by their ranks of the candidates; this library's own",
        paper="this library",
        transfer=True,
        build=later("committee:build"),
    )
    for name, (loss, words) in ensembles.LOSSES.items():
        yield Entry(
            name=name,
            summary=f"deep ensemble with {words}, fine-tuned and picking as dre-paper",
            paper=_DRE_PAPER,
            transfer=True,
            build=ensembles.with_loss(loss, transfer=True),
        )
        yield Entry(
            name=f"{name}-ri",
            summary=f"deep ensemble with {words}, else as dre-ri",
            paper=_DRE_PAPER,
            transfer=False,
            build=ensembles.with_loss(loss, transfer=False),
        )


def _without_transfer() -> Iterator[Entry]:
    """Methods that know the task at hand alone."""
    yield Entry(
        name="random",
        summary="random search",
        paper="Bergstra and Bengio 2012",
        transfer=False,
        build=later("random_search:build"),
    )
    yield Entry(
        name="gp",
        summary="Gaussian process, Matern 5/2, expected improvement",
        paper="Snoek, Larochelle and Adams 2012",
        transfer=False,
        build=later("gp:build"),
    )
    yield Entry(
        name="dngo",
        summary="Bayesian linear regression on a basis that a network learns",
        paper="Snoek et al. 2015",
        transfer=False,
        build=later("dngo:build"),
    )
    yield Entry(
        name="bohamiann",
        summary="Bayesian neural network, sampled by scale-adapted stochastic-gradient HMC",
        paper="Springenberg, Klein, Falkner and Hutter 2016",
        transfer=False,
        build=later("bohamiann:build"),
    )
    for name, built_by, words in (
        ("deep-ensemble", "five", "five networks"),
        ("deep-ensemble-10", "ten", "ten networks"),
        ("deep-ensemble-reuse", "reused", "five networks, trained on from trial to trial,"),
    ):
        yield Entry(
            name=name,
            summary=f"{words} that predict mean and variance, expected improvement",
            paper="Lakshminarayanan, Pritzel and Blundell 2017",
            transfer=False,
            build=later(f"deep_ensemble:{built_by}"),
        )
    yield Entry(
        name="dkgp",
        summary="Gaussian process on features of a network, both fitted to the task before every trial",
        paper="Wilson, Hu, Salakhutdinov and Xing 2016",
        transfer=False,
        build=later("dkgp:build"),
    )
    yield Entry(
        name="metis",
        summary="Gaussian process; exploration, exploitation and outliers propose, the largest gain is taken",
        paper="Li et al. 2018",
        transfer=False,
        build=later("metis:build"),
    )
    yield Entry(
        name="hebo",
        summary="HEBO's method on the library's Gaussian process",
        paper="Cowen-Rivers et al. 2022",
        transfer=False,
        build=later("hebo:build"),
    )


def _with_transfer() -> Iterator[Entry]:
    """Methods that learn from past tasks, other than ranking ensembles."""
    yield Entry(
        name="fsbo",
        summary="deep-kernel Gaussian process, meta-trained and fine-tuned before every trial",
        paper="Wistuba and Grabocka 2021",
        transfer=True,
        build=later("fsbo:build"),
    )
    yield Entry(
        name="dklm",
        summary="the same, not fine-tuned, whose kernel also sees a deep set of the trials",
        paper="Jomaa, Pineda Arango, Schmidt-Thieme and Grabocka 2021",
        transfer=True,
        build=later("dklm:build"),
    )
    yield Entry(
        name="rgpe",
        summary="Gaussian processes of past tasks, weighted by how well they rank the trials",
        paper="Feurer, Letham and Bakshy 2018",
        transfer=True,
        build=later("rgpe:build"),
    )
    yield Entry(
        name="tst",
        summary="two-stage transfer surrogate: means of past tasks, weighted by nearness",
        paper="Wistuba, Schilling and Schmidt-Thieme 2016",
        transfer=True,
        build=later("tst:build"),
    )
    yield Entry(
        name="taf",
        summary="transfer acquisition function: improvements that past tasks predict",
        paper="Wistuba, Schilling and Schmidt-Thieme 2018",
        transfer=True,
        build=later("taf:build"),
    )
    yield Entry(
        name="gcp",
        summary="Gaussian copula process: a prior from past tasks' quantiles, a process of the residuals",
        paper="Salinas, Shen and Perrone 2020",
        transfer=True,
        build=later("gcp:build"),
    )
    yield Entry(
        name="gcp-ts",
        summary="Thompson sampling from the copula's prior alone",
        paper="Salinas, Shen and Perrone 2020",
        transfer=True,
        build=later("gcp:build_thompson"),
    )


def _of_libraries() -> Iterator[Entry]:
    """Host methods: other libraries' algorithms on the rows of a table."""
    yield Entry(
        name="rf",
        summary="random forest with the variance over trees and within leaves, expected improvement",
        paper="Hutter, Hoos and Leyton-Brown 2011",
        transfer=False,
        host="dre_jax.methods.rf:RandomForest",
        library="scikit-learn",
        extra="baselines",
    )
    yield Entry(
        name="smac",
        summary="SMAC's random forest, expected improvement and random interleaving",
        paper="Lindauer et al. 2022",
        transfer=False,
        host="dre_jax.methods.smac:SMAC",
        library="smac",
        extra="baselines",
    )
    yield Entry(
        name="tpe",
        summary="tree-structured Parzen estimator, each column apart",
        paper="Bergstra, Bardenet, Bengio and Kegl 2011",
        transfer=False,
        host="dre_jax.methods.tpe:TPE",
        library="optuna",
        extra="optuna",
    )
    yield Entry(
        name="tpe-multivariate",
        summary="tree-structured Parzen estimator, columns together",
        paper="Falkner, Klein and Hutter 2018",
        transfer=False,
        host="dre_jax.methods.tpe:MultivariateTPE",
        library="optuna",
        extra="optuna",
    )


METHODS: dict[str, Entry] = {
    entry.name: entry
    for group in (_ensembles(), _without_transfer(), _with_transfer(), _of_libraries())
    for entry in group
}
"""All methods, by name."""


def find(name: str) -> Entry:
    """The method of a name.

    Raises:
      ConfigError: for an unknown name; the message lists those that there are.

    Example:
      >>> find("random").transfer
      False
    """
    if name in METHODS:
        return METHODS[name]
    near = difflib.get_close_matches(name, METHODS, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    raise ConfigError(f"the method must be one of {', '.join(METHODS)}, but got {name!r}{hint}")
