"""Callbacks of trainers of neural networks, by the examples of the page; the trainers are not in the extra `test`.

A training that pauses after 2 epochs, and is resumed from its checkpoint, reports what a training without a pause does.
"""

import os
import re
from pathlib import Path

import jax
import numpy as np
import pytest

from dre_jax.errors import ConfigError
from tests.error_messages import raises_line

os.environ.setdefault("KERAS_BACKEND", "jax")
PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "trainers.md"
EPOCHS = 4
RNG = np.random.default_rng(0)
X = RNG.normal(size=(64, 3)).astype(np.float32)
Y = (X @ np.float32([[1.0], [2.0], [-1.0]])).astype(np.float32)
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.thorough]


def page_objective(heading, **names):
    """The objective of a section of the page, with what the section takes for granted."""
    section = PAGE.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    exec(re.search(r"```py\n(.*?)```", section, re.DOTALL)[1].replace("=16", f"={EPOCHS}"), names)
    return names["objective"]


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """Lightning writes logs where it runs."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def check(trial, budgeted, reports_of, tmp_path):
    """Checks an objective against the values of the trainer's own history after each epoch of one training."""

    def run(objective, history):
        assert len(history) == EPOCHS
        first, second = budgeted(2), budgeted(EPOCHS)
        first, second = (trial.with_fields(checkpoint=tmp_path / "paused") for trial in (first, second))
        assert objective(first) == pytest.approx(history[1], rel=1e-5)
        assert objective(second.with_fields(resumes=0)) == pytest.approx(history[-1], rel=1e-5)
        expected = dict(enumerate(history, start=1))
        assert reports_of(first) | reports_of(second) == pytest.approx(expected, rel=1e-5)
        assert set(reports_of(first)) == {1, 2}
        objective(trial.with_fields(checkpoint=tmp_path / "stopped"))
        assert set(reports_of(trial)) == {1, 2, 3}, "the study stops the trial there"

    return run


@pytest.fixture
def keras():
    """The package, which adds arrays of different ranks."""
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        yield pytest.importorskip("keras")


@pytest.fixture
def lightning():
    """The package, a module of it, and its data."""
    lightning, torch = pytest.importorskip("lightning.pytorch"), pytest.importorskip("torch")

    class Net(lightning.LightningModule):
        def __init__(self, lr):
            super().__init__()
            torch.manual_seed(0)
            self.lr, self.layer = lr, torch.nn.Linear(3, 1)

        def training_step(self, batch):
            return torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1])

        def validation_step(self, batch):
            self.log("val_loss", torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1]))

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), self.lr)

    rows = torch.utils.data.TensorDataset(torch.tensor(X), torch.tensor(Y))
    return lightning, Net, torch.utils.data.DataLoader(rows, batch_size=16)


def test_lightning(lightning, check, trial, tmp_path):
    package, net, data = lightning
    history = []

    class Record(package.Callback):
        def on_validation_end(self, trainer, module):
            if not trainer.sanity_checking:
                history.append(float(trainer.callback_metrics["val_loss"]))

    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
    package.Trainer(
        max_epochs=EPOCHS, callbacks=[Record()], enable_checkpointing=False, default_root_dir=tmp_path, **quiet
    ).fit(net(trial["lr"]), data, data)
    check(page_objective("PyTorch Lightning", Net=net, data=data, valid=data), history)


def test_lightning_reports_validated_epochs(lightning, budgeted, reports_of, tmp_path):
    package, net, data = lightning
    from dre_jax.tuning.trainers import LightningReport

    quiet = {"logger": False, "enable_checkpointing": False, "accelerator": "cpu", "default_root_dir": tmp_path}
    trial = budgeted(4)
    package.Trainer(
        max_epochs=8, check_val_every_n_epoch=2, callbacks=[LightningReport(trial, "val_loss")], **quiet
    ).fit(net(0.1), data, data)
    assert set(reports_of(trial)) == {2, 4}
    other = budgeted(4)
    with raises_line(ConfigError, "'val_loss'", "'accuracy'"):
        package.Trainer(max_epochs=1, callbacks=[LightningReport(other, "accuracy")], **quiet).fit(net(0.1), data, data)
    trainer = package.Trainer(devices=2, strategy="ddp", **quiet)
    with raises_line(ConfigError, "2 processes"):
        LightningReport(other, "val_loss").setup(trainer, net(0.1), "fit")


def test_transformers(check, trial, budgeted, tmp_path):
    transformers, torch = pytest.importorskip("transformers"), pytest.importorskip("torch")
    pytest.importorskip("accelerate")
    data = [{"input_ids": list(row), "labels": list(row)} for row in RNG.integers(0, 16, (16, 4)).tolist()]

    def make_model():
        torch.manual_seed(0)
        config = transformers.GPT2Config(vocab_size=16, n_positions=4, n_embd=8, n_layer=1, n_head=1)
        config.resid_pdrop = config.embd_pdrop = config.attn_pdrop = 0.0
        return transformers.GPT2LMHeadModel(config)

    arguments = transformers.TrainingArguments(
        output_dir=tmp_path / "one",
        learning_rate=trial["lr"],
        num_train_epochs=EPOCHS,
        eval_strategy="epoch",
        save_strategy="no",
        report_to="none",
        use_cpu=True,
    )
    trainer = transformers.Trainer(make_model(), arguments, train_dataset=data, eval_dataset=data)
    trainer.train()
    history = [log["eval_loss"] for log in trainer.state.log_history if "eval_loss" in log]
    check(page_objective("Hugging Face", make_model=make_model, data=data, valid=data), history)

    from dre_jax.tuning.trainers import TransformersReport

    report = TransformersReport(budgeted(2), "eval_accuracy")
    trainer = transformers.Trainer(make_model(), arguments, train_dataset=data, eval_dataset=data, callbacks=[report])
    with raises_line(ConfigError, "'eval_loss'", "'eval_accuracy'"):
        trainer.train()


def test_keras(keras, check, trial, budgeted):
    def make_model(lr):
        keras.utils.set_random_seed(0)
        model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
        model.compile(keras.optimizers.Adam(lr), "mse")
        return model

    data = {"x": X, "y": Y, "validation_data": (X, Y), "verbose": 0, "shuffle": False}
    history = make_model(trial["lr"]).fit(**data, epochs=EPOCHS).history["val_loss"]
    objective = page_objective(
        "Keras", make_model=lambda lr: unshuffled(make_model(lr)), x=X, y=Y, x_valid=X, y_valid=Y
    )
    check(objective, history)

    from dre_jax.tuning.trainers import KerasReport

    with raises_line(ConfigError, "'val_loss'", "'accuracy'"):
        make_model(0.1).fit(**data, epochs=1, callbacks=[KerasReport(budgeted(2), "accuracy")])


def unshuffled(model):
    """A model of Keras whose order of rows does not depend on where a training began."""
    fit = model.fit
    model.fit = lambda *args, **options: fit(*args, shuffle=False, **options)
    return model
