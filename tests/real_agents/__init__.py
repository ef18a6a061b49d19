"""The real agent programs in tmux against a scripted model on loopback: nothing leaves the machine, no account is used.

`clis` says which programs and how each is prepared, `installs` fetches them, `workbench` runs one, `model` answers it.
"""
