"""The board's page as people use it: in a real browser, against a whole fleet."""
