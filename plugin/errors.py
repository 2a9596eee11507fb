"""How a test says that a claim is refuted, or that nothing could be concluded."""


class Refuted(AssertionError):  # noqa: N818 - the outcome's name
    """The claim is refuted; the text is the table of checks. Every tool calls an AssertionError a failure."""


class Inconclusive(Exception):  # noqa: N818 - the outcome's name
    """The evidence is not good enough to say; the text says what to change. No AssertionError: no refutation."""


class JudgeFailed(Exception):  # noqa: N818 - the outcome's name
    """The judge itself failed, and nothing else that it found refutes the claim: a failure of the harness."""
