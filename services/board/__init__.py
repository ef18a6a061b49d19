"""The board: the fleet as cards and comments on a page, for people who watch and steer it."""
