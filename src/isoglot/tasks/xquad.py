"""XQuAD: SQuAD's questions, translated by professionals."""

from __future__ import annotations

from typing import ClassVar

from isoglot.tasks.finding import Layout, hub
from isoglot.tasks.squad import QuestionTask


class Xquad(QuestionTask):
    """XQuAD (Artetxe et al. 2020): 1,190 questions in each of 12 languages, test only.

    CC BY-SA 4.0. Scored by the SQuAD 1.1 script as it is, English articles and all.
    """

    name = "xquad"
    languages = "12"
    line = "answers in a paragraph, translated from SQuAD"
    paper = "Artetxe et al. 2020"
    licence = "CC BY-SA 4.0"
    layouts: ClassVar = (
        Layout("xquad/{language}.json", split="test"),
        Layout("xquad/xquad.{language}.json", split="test"),
        *hub("xquad", "xquad.{language}", test="validation"),
    )
