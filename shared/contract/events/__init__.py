"""Events: what services say happened, one module per topic.

A kind of event is one class: its fields, its sentence for people, its tone and its urgency. Events are in the past
tense and never change once they are published.
"""
