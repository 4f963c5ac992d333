"""The paper's experiments on HPO-B: which trace is which method, what the traces lack, and what the paper says."""

from __future__ import annotations

from typing import NamedTuple

from published.claims import Claim, better, differs, leads, none_differ, number


class Experiment(NamedTuple):
    """One panel of the paper's figures, with its critical-difference diagram."""

    name: str
    """Folder of its figures."""
    title: str
    files: dict[str, str]
    """Method, as the paper calls it -> name of its trace."""
    notes: tuple[str, ...]
    """Remarks on what is drawn, and on what the traces lack."""
    claims: tuple[Claim, ...]
    grid: bool = False
    """True where the paper also shows it by search space."""


_RANKS = {
    "DRE": {25: 2.6849, 50: 2.7849, 100: 2.8942},
    "FSBO": {25: 3.1500, 50: 3.0744, 100: 2.9965},
    "Random": {25: 4.6977, 50: 4.7988, 100: 4.7779},
}
_REGRETS = {"DRE": {50: 0.0209, 100: 0.0152}, "FSBO": {50: 0.0210, 100: 0.0125}}
_WITH_TRANSFER = ("DRE", "FSBO", "RGPE", "TST", "TAF", "Random")

_TRANSFER = Experiment(
    name="transfer",
    title="Figures 5a, 9a and 12: transfer methods",
    files={name: name for name in _WITH_TRANSFER},
    notes=(
        "Meta-trained and fine-tuned DRE against HPO-B's transfer baselines, and random search.",
        "Cannot be drawn: GCP, DKLM and HEBO. The paper's authors ran them anew, and their traces are not among the "
        "published files. An average rank depends on who else is ranked, so the levels here differ from the paper's; "
        "the order among the methods here need not.",
        "There are two traces of FSBO. This is FSBO.json; FSBO2.json is stronger.",
    ),
    claims=(
        leads("DRE ranks best over all 100 trials.", "DRE"),
        differs("Its lead is significant.", "DRE", _WITH_TRANSFER[1:]),
        *(better(f"It outperforms {other}.", "DRE", other) for other in _WITH_TRANSFER[1:-1]),
        *(
            number(quantity, method, trial, value, _WITH_TRANSFER)
            for quantity, methods in (("rank", _RANKS), ("regret", _REGRETS))
            for method, at in methods.items()
            for trial, value in at.items()
        ),
    ),
    grid=True,
)

_NON_TRANSFER = Experiment(
    name="non-transfer",
    title="Figures 5b, 9b and 13: methods without transfer",
    files={
        "DRE-RI": "DRE-RI-deepset",
        "GP": "GP",
        "DNGO": "DNGO",
        "BOHAMIANN": "BOHAMIANN",
        "DKGP": "DGP",
        "Random": "Random",
    },
    notes=(
        "DRE from random weights, with the deep set, against HPO-B's baselines that learn from the task at hand alone.",
        "Cannot be drawn: HEBO, which the paper places first in the end. So it cannot be told from these files that "
        "DRE-RI is second to HEBO only.",
    ),
    claims=(
        leads("DRE-RI does well against the others up to about 30 trials: until then it ranks best.", "DRE-RI", 30),
        *(better(f"It outperforms {other}.", "DRE-RI", other) for other in ("BOHAMIANN", "DNGO", "DKGP")),
    ),
    grid=True,
)

_LOSSES = Experiment(
    name="losses",
    title="Figures 6a and 11a: the ranking loss",
    files={
        "W-List": "loss-list-weighted_t",
        "List": "loss-list_t",
        "Pair": "loss-pair_t",
        "Point": "loss-point_t",
        "Regression": "loss-reg_t",
    },
    notes=(
        "Meta-trained DRE without the deep set and with expected improvement, by the loss that it is trained with.",
    ),
    claims=(
        leads("The weighted list-wise loss ranks best.", "W-List"),
        better("Weights help.", "W-List", "List"),
        *(better(f"The list-wise loss is better than {other}.", "List", other) for other in ("Pair", "Point")),
        better("The pair-wise loss is better than the point-wise one.", "Pair", "Point"),
        better("Even the point-wise loss is better than regression.", "Point", "Regression"),
    ),
)

_FEATURES = Experiment(
    name="meta-features",
    title="Figures 6b and 11b: meta-features, meta-learning, fine-tuning",
    files={
        "DRE-MTF": "DRE",
        "DRE-MT": "DRE-acq-ei",
        "DRE-MF": "DRE-no-finetune",
        "DRE-TF": "DRE-RI-deepset",
        "DRE-T": "DRE-RI-ei-4x32",
    },
    notes=("M: meta-learned. T: fine-tuned at every trial. F: with meta-features, which come from the deep set.",),
    claims=(
        leads("All three together rank best.", "DRE-MTF"),
        better("Meta-features help with meta-learning.", "DRE-MTF", "DRE-MT"),
        better("They help without it.", "DRE-TF", "DRE-T"),
        better("Fine-tuning matters.", "DRE-MTF", "DRE-MF"),
        differs("The differences are significant.", "DRE-MTF", ("DRE-MT", "DRE-MF", "DRE-TF", "DRE-T")),
    ),
)

_ACQUISITION = Experiment(
    name="acquisition",
    title="Figures 6c and 10b: the acquisition function",
    files={"EI": "DRE-acq-ei", "UCB": "DRE-acq-ucb", "Avg": "DRE-acq-avg", "Random": "Random"},
    notes=(
        "Meta-trained and fine-tuned DRE by acquisition function, and random search.",
        "The paper's text has this with meta-features. The traces that differ in the acquisition alone are those of "
        "DRE without the deep set, so it is these that are drawn.",
    ),
    claims=(
        leads("Expected improvement ranks best.", "EI"),
        better("It is better than UCB.", "EI", "UCB"),
        better("UCB is better than the average rank, which leaves uncertainty out.", "UCB", "Avg"),
    ),
)

_SIZES = ("16x2", "32x2", "48x2", "64x2", "32x3", "32x4")

_SCORERS = Experiment(
    name="scorer-size",
    title="Figures 7 and 10a: the scorer's size",
    files={size: f"scorer-{size}" for size in _SIZES},
    notes=(
        "Width x depth of the scorers, on HPO-B's validation split: other tasks than in all other sections.",
        "One of its 91 tasks has a constant response; its five runs are 0/0 throughout and are left out.",
    ),
    claims=(
        none_differ("No size differs significantly from another.", _SIZES),
        better("Depth counts: four layers are better than two,", "32x4", "32x2"),
        better("and three better than two;", "32x3", "32x2"),
        better("four layers of 32 are better even than two of 64.", "32x4", "64x2"),
    ),
)

EXPERIMENTS = (_TRANSFER, _NON_TRANSFER, _LOSSES, _FEATURES, _ACQUISITION, _SCORERS)

INTRODUCTION = (
    "The experiments on HPO-B in Khazi, Pineda Arango and Grabocka, Deep Ranking Ensembles for Hyperparameter "
    "Optimization (ICLR 2023), drawn again from the traces that were published with it and with HPO-B. Nothing was "
    "run: the traces are read, compared and tested as dre-jax report does.",
    "The paper's text gives no numbers for these figures. Beside each stands what it says in words, whether the traces "
    "bear it out, and, for the transfer methods, reference values that this library is held to.",
    "The paper's own diagrams of critical differences come from another script. Here the tests are Friedman's, then "
    "Wilcoxon's between all pairs with Holm's correction, over tasks; the same pooled over runs is on the page as "
    "well. So bars may differ from the paper's.",
    "Not on this page, as no traces of it are published: Figure 8a (list size), Table 1 (cost of a trial), and all "
    "that GCP, DKLM and HEBO take part in. Figures 2 to 4 are not about HPO-B, and 8b draws a formula.",
)
