"""What each task is: spaces, reference scores, simulators, and episodes played in them."""

from farama_notifications import notifications

# On import gymnasium-robotics prints a notice about the rewards of its Adroit tasks. None of them is used here, and
# the notice would stand above every error line.
notifications.pop("gymnasium_robotics", None)
