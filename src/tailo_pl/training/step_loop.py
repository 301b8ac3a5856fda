"""StepLoop: Lightning's loop over the steps of training, without asking at each of them for what nobody has."""

from __future__ import annotations

from typing import Any

from lightning import Callback, LightningDataModule, LightningModule, Trainer
from lightning.pytorch.loops.fetchers import _DataFetcher, _DataLoaderIterDataFetcher
from lightning.pytorch.loops.training_epoch_loop import _TrainingEpochLoop
from lightning.pytorch.plugins import MixedPrecision, Precision
from lightning.pytorch.strategies import DDPStrategy, SingleDeviceStrategy
from lightning.pytorch.utilities.model_helpers import is_overridden
from torch import Tensor

# Hooks of a step that StepLoop does not call.
_OF_CALLBACKS = ("on_before_zero_grad", "on_before_backward", "on_after_backward", "on_before_optimizer_step")
_OF_MODULES = (
    *_OF_CALLBACKS,
    "on_train_batch_start",
    "on_train_batch_end",
    "backward",
    "optimizer_zero_grad",
    "configure_gradient_clipping",
    "transfer_batch_to_device",
)
_OF_DATA = ("on_before_batch_transfer", "on_after_batch_transfer")


class StepLoop(_TrainingEpochLoop):
    """What Lightning does at a step, in its order, for an update by one optimiser.

    Lightning's own loop asks callbacks, module and strategy some forty times a step whether they have a hook, and finds
    that all but a few have not: half a millisecond. Here that is found out once, when training begins. Where anybody
    has a hook that is not called here, or an update takes more (clipping, accumulation, a scaler, a strategy other than
    one device or DDP), Lightning's own steps are taken; so is the first one behind a checkpoint.
    """

    _validates: bool | None = None  # known once training begins

    def on_run_start(self, data_fetcher: _DataFetcher) -> None:
        super().on_run_start(data_fetcher)
        trainer = self.trainer
        self._plain = is_plain(trainer) and not isinstance(data_fetcher, _DataLoaderIterDataFetcher)
        self._validates = trainer.enable_validation
        self._at_start = [one for one in trainer.callbacks if is_overridden("on_train_batch_start", one, Callback)]
        self._at_end = [one for one in trainer.callbacks if is_overridden("on_train_batch_end", one, Callback)]

    def advance(self, data_fetcher: _DataFetcher) -> None:
        if self.restarting or not self._plain:
            super().advance(data_fetcher)
            return
        trainer, module, progress = self.trainer, self.trainer.lightning_module, self.batch_progress
        connector = trainer._logger_connector
        if trainer.world_size > 1:
            self._broadcast_sigterm_tensor()
        batch, _, _ = next(data_fetcher)
        batch_idx = self.batch_idx + 1
        progress.is_last_batch = data_fetcher.done
        batch = trainer.datamodule.transfer_batch_to_device(batch, trainer.strategy.root_device, 0)
        progress.increment_ready()
        connector.on_batch_start(batch)
        connector._current_fx = None
        module._current_fx_name = "on_train_batch_start"  # what `log` goes by
        for callback in self._at_start:
            callback.on_train_batch_start(trainer, module, batch, batch_idx)
        progress.increment_started()
        outputs = self._update(batch, batch_idx)
        progress.increment_processed()
        if trainer.lr_scheduler_configs:
            self.update_lr_schedulers("step", update_plateau_schedulers=False)
        module._current_fx_name = "on_train_batch_end"
        for callback in self._at_end:
            callback.on_train_batch_end(trainer, module, outputs, batch, batch_idx)
        module._current_fx_name = None
        logged = connector._current_fx is not None or connector.should_update_logs
        if logged:
            connector.on_batch_end()
        progress.increment_completed()
        if logged:
            connector.update_train_step_metrics()

    def _should_check_val_epoch(self) -> bool:
        if self._validates is False:
            return False
        every_step = self._validates and self.trainer.check_val_every_n_epoch is None
        return every_step or super()._should_check_val_epoch()

    def _update(self, batch: Any, batch_idx: int) -> dict[str, Any]:
        strategy, module = self.trainer.strategy, self.trainer.lightning_module
        optimizer, progress = strategy.optimizers[0], self.automatic_optimization.optim_progress.optimizer
        outputs: dict[str, Any] = {}

        def closure() -> Tensor:  # optimisers call it with gradients enabled
            module._current_fx_name = "training_step"
            output = strategy.training_step(batch, batch_idx)
            outputs.update({"loss": output} if isinstance(output, Tensor) else output)
            progress.zero_grad.increment_ready()
            progress.zero_grad.increment_started()
            optimizer.zero_grad()
            progress.zero_grad.increment_completed()
            loss: Tensor = outputs["loss"]
            loss.backward()  # type: ignore[no-untyped-call]
            outputs["loss"] = loss.detach()
            return loss

        progress.step.increment_ready()
        module.optimizer_step(self.trainer.current_epoch, batch_idx, optimizer, closure)
        progress.step.increment_completed()
        return outputs


def is_plain(trainer: Trainer) -> bool:
    """Whether a step is no more than what StepLoop does."""
    module, data, precision = trainer.lightning_module, trainer.datamodule, trainer.precision_plugin  # type: ignore[attr-defined]
    callbacks: list[Callback] = trainer.callbacks  # type: ignore[attr-defined]
    return (
        module.automatic_optimization
        and data is not None
        and len(trainer.optimizers) == 1
        and trainer.accumulate_grad_batches == 1
        and not trainer.gradient_clip_val
        and type(trainer.strategy) in (SingleDeviceStrategy, DDPStrategy)
        and (type(precision) is Precision or (type(precision) is MixedPrecision and precision.scaler is None))
        and not any(is_overridden(hook, module, LightningModule) for hook in (*_OF_MODULES, *_OF_DATA))
        and not any(is_overridden(hook, data, LightningDataModule) for hook in _OF_DATA)
        and not any(is_overridden(hook, one, Callback) for one in callbacks for hook in _OF_CALLBACKS)
    )


def use_step_loop(trainer: Trainer) -> None:
    """Let a trainer take its steps by `StepLoop`."""
    own = trainer.fit_loop.epoch_loop
    trainer.fit_loop.epoch_loop = StepLoop(trainer, own.min_steps, own.max_steps)
