"""RCE: TD3BC whose critics estimate the probability of future success, from examples of it (Eysenbach et al. 2021)."""

from __future__ import annotations

import torch
from torch import Tensor

from tailo_pl.data.batches import TransitionBatch
from tailo_pl.losses.td3 import example_terms, success_odds, success_terms
from tailo_pl.models.td3bc import TD3BC


class RCE(TD3BC):
    """As TD3BC, without rewards: critics end in a sigmoid and classify steps against TS, the states of success.

    Arguments are those of TD3BC.
    """

    def value_of(self, outputs: Tensor) -> Tensor:
        return torch.sigmoid(outputs)

    def critic_loss(self, batch: TransitionBatch, states: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        assert batch.expert is not None
        examples = self.standardise(batch.expert.observations)
        with torch.no_grad():
            success_actions = self.act(examples, self.target_network)
        outputs = self.critics(torch.cat([states, examples]), torch.cat([actions, success_actions]))
        of_steps, of_examples = zip(*(one.split([len(states), len(examples)]) for one in outputs), strict=True)
        steps = success_terms(of_steps, success_odds(self.next_outputs(batch)), self.discount)
        terms = torch.cat([steps, example_terms(of_examples, self.discount)])  # both kinds of rows together
        return terms.mean(), self.value_of(of_steps[0])
