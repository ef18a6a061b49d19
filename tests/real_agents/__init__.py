"""The real agent programs in tmux against a scripted model on loopback: nothing leaves the machine, no account is used."""
