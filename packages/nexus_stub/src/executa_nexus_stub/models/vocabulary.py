"""The word lists of the offline model: data, and nothing else."""

from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


STOPWORDS: Final = _words(
    """a about above after again all also am an and any are as at be because been before being
    below between both but by can could did do does doing down during each few for from further
    had has have having he her here hers him his how i if in into is it its itself just let me
    more most must my no nor not now of off on once only or other our out over own please same
    she should so some such than that the their them then there these they this those through to
    too under until up us use using very was we were what when where which while who whom why
    will with would you your"""
)
"""Words without a meaning of their own."""

EVERYDAY: Final = _words(
    """add answer ask brief call check count create delete do echo explain fetch find get go help
    list look make note open plan print read remember remove reply run save say search send set
    show start stop store sum summarise summarize summary take tell test think time translate
    update use wait work write"""
)
"""Words of ordinary instructions; a tool of that name is called only after a cue."""

VERBS: Final = _words(
    """answer brief compress condense describe explain extract give list name outline read
    rewrite say shorten state summarise summarize sum tell tldr write"""
)
"""Verbs that open an instruction about some text."""
