"""Events: what happened, as services report it. One module per topic.

A kind of event is one class in the past tense: its fields, its sentence for people, its tone and its urgency. The
docstrings and descriptions are published in the AsyncAPI file.
"""
