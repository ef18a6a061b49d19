"""What a command that can't be carried out is answered with."""

from shared.errors import MusterError


class Refusal(MusterError):
    """A command that can't be carried out as things are."""

    code = "refused"


class Overtaken(Refusal):
    """Something else was asked of the agent while it waited: whoever asked first should not insist."""

    code = "overtaken"
