"""Public repositories of trainings become tasks: configurations, curves, and each other's past."""

import json

import numpy as np
import pytest

from dre_jax.errors import DataError


@pytest.fixture
def algoperf(tmp_path):
    """Two workloads: two submissions, one of which lacks a learning rate, with two trainings of a configuration."""
    logs = tmp_path / "checkout" / "previous_leaderboards" / "v1" / "logs" / "external_tuning"
    configs = {"adam": {"learning_rate": 0.1, "beta1": 0.9, "warmup_factor": 0.02}, "free": {"l2": 0.5}}
    for workload, gain in (("vision_jax", 1.0), ("speech_pytorch", 2.0)):
        for submission, config in configs.items():
            for repetition, n_steps in ((0, 10), (1, 20)):
                folder = logs / submission / f"study_{repetition}" / workload / "trial_1"
                folder.mkdir(parents=True)
                (folder / "hparams.json").write_text(json.dumps(config))
                rows = [f"{step},{gain * step + repetition}" for step in range(0, n_steps + 1, 5)]
                text = "\n".join(["global_step,validation/loss", *rows, f"{n_steps + 1},nan"])
                (folder / "eval_measurements.csv").write_text(text + "\n")
    return tmp_path / "checkout"


def test_trainings_of_submissions(part, algoperf, tmp_path, capsys):
    part("make_curves").main(["--algoperf", str(algoperf), "--out", str(tmp_path)])
    assert capsys.readouterr().out.splitlines() == [
        "speech: 2 configurations, 4 trainings",
        "vision: 2 configurations, 4 trainings",
    ]
    speech, vision = part("rivals.recorded_tasks").recorded_tasks(tmp_path / "algoperf", 300)
    assert (speech.family, speech.name, vision.name) == ("algoperf", "speech", "vision")
    assert list(vision.problem.past) == ["speech"]
    adam = {"submission": "adam", "learning_rate": 0.1, "one_minus_beta1": 0.1, "warmup": 0.02}
    free = {"submission": "free", "weight_decay": 0.5}
    assert sorted(vision.rows, key=len) == [free, adam]
    # Minus the mean of t * 10 and t * 20 + 1 after the share t of the training.
    for task, gain in ((vision, 1.0), (speech, 2.0)):
        shares = np.arange(1, 28) / 27
        np.testing.assert_allclose(task.curve(adam), -(gain * 15 * shares + 0.5), atol=1e-6)
    assert {trial.value for trial in vision.problem.past["speech"]} == {-30.5}


def test_trainings_of_agents(part, tmp_path):
    folder = tmp_path / "data_hpo_rl_bench" / "PPO" / "Pong-v0"
    folder.mkdir(parents=True)
    for seed in range(2):
        record = {"gamma": 0.9, "learning_rate": -3, "clip": 0.2, "returns_eval": [seed, seed, seed + 4]}
        (folder / f"Pong-v0_PPO_random_lr_-3_gamma_0.9_clip_0.2_seed{seed}_eval.json").write_text(json.dumps(record))
    arguments = ["--hpo-rl-bench", str(tmp_path), "--out", str(tmp_path)]
    part("make_curves").main(arguments)
    [training] = json.loads((tmp_path / "hpo-rl-bench" / "Pong-v0.json").read_text())
    assert training["config"] == {"learning_rate": -3.0, "gamma": 0.9, "clip": 0.2}
    assert training["curve"][49] == [0.5, 0.5]
    assert training["curve"][-1] == [1.0, 4.5]
    with pytest.raises(DataError, match=r"must have trainings of \['Go'\], but has none"):
        part("make_curves").main([*arguments, "--workloads", "Go"])


def test_a_hyperparameter_that_is_missing_without_a_reason(part, tmp_path):
    configs = [{"kind": "a", "x": 0.5}, {"kind": "a"}]
    rows = [{"config": config, "curve": [[1, 0.5], [2, 1.0]], "diverged": False} for config in configs]
    (tmp_path / "task.json").write_text(json.dumps(rows))
    with pytest.raises(DataError, match="'x' must be in all configurations, or depend on a choice"):
        list(part("rivals.recorded_tasks").recorded_tasks(tmp_path / "task.json", 300))
