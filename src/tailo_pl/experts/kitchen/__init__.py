"""The demonstrator of the kitchen: a controller of the arm, skills as data, and sequences of skills."""
