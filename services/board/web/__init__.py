"""The web server of the board: who may talk to it, what it answers, and the streams of open pages."""
