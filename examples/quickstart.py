# %% [markdown]
# # TAILO on arrays
# You have some states that an expert reached and a pile of state-action trajectories of unknown quality. TAILO finds
# the trajectories that lead where the expert goes and clones them. This takes about half a minute on one core;
# run it as a script, or cell by cell in an editor that knows `# %%`.

# %%
import numpy as np

from tailo_pl import TAILO, load_policy

rng = np.random.default_rng(0)

# %% [markdown]
# ## Data
# A point on a plane, moved by its action. Somebody recorded 80 walks from the middle: 20 to the left, 20 to the
# right, 20 up, 20 down, and did not write down which is which.

# %%
DIRECTIONS = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
ta = []
for direction in np.repeat(DIRECTIONS, 20, axis=0):
    position, states, actions = rng.normal(0, 0.05, 2), [], []
    for _ in range(40):
        action = np.clip(0.8 * direction + rng.normal(0, 0.2, 2), -1, 1)
        states.append(position)
        actions.append(action)
        position = position + 0.1 * action
    ta.append((np.array(states), np.array(actions)))

# %% [markdown]
# The expert showed only where it wants to be: 50 states at the left. No actions.

# %%
ts = rng.normal([-2.8, 0.0], 0.1, (50, 2))

# %% [markdown]
# ## Training
# Few steps, because the task is small; the policy's weights are then averaged over fewer of them, too.
# `directory="runs"` would keep the run for `tailo report`, `tailo export` and the other commands.

# %%
model = TAILO(
    gamma=0.98,
    pretrain_steps=200,
    formal_steps=500,
    policy_steps=600,
    action_low=-1,
    action_high=1,
    overrides=["preset.averaging=0.98"],
    verbose=True,
)
model.fit(ts, ta)

# %% [markdown]
# ## What it found
# R(s) says how much a state looks like the expert's; W(s, a) says how much a step leads there. The share of the
# weight that each direction got:

# %%
weight = np.add.reduceat(model.weights_, model.offsets_[:-1]).reshape(4, 20).sum(axis=1)
for name, share in zip(("left", "right", "up", "down"), weight / weight.sum(), strict=True):
    print(f"{name:<6}{share:7.1%}")
print("R at the left and at the right:", model.score_states(np.array([[-3.0, 0.0], [3.0, 0.0]])).round(1))

# %% [markdown]
# ## The policy
# From the middle it should walk left. `load_policy` gives the same policy from the folder of a run.

# %%
policy = load_policy(model.run_dir_)
position = np.zeros(2)
for _ in range(30):
    position = position + 0.1 * policy(position)
print("after 30 steps:", position.round(2))
