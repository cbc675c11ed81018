"""TyDi QA, gold passage: questions asked in each language by people who did not know the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.tasks.codes import english_name
from isoglot.tasks.finding import Layout, hub
from isoglot.tasks.squad import QuestionTask, read_questions

if TYPE_CHECKING:
    from isoglot.tasks.base import Part
    from isoglot.tasks.examples import Question

LANGUAGES = ("ar", "bn", "en", "fi", "id", "ko", "ru", "sw", "te")


class TydiQa(QuestionTask):
    """TyDiQA-GoldP (Clark et al. 2020): nine languages, 49,881 train and 5,077 dev questions.

    Dev questions: ar 921, en 440, fi 782, ko 276, ru 812, sw 499. Apache-2.0, the text is
    Wikipedia's (CC BY-SA 3.0). Scored by the SQuAD 1.1 script. The official average is over the
    languages without English; tables here name what they average.
    """

    name = "tydiqa"
    languages = "9"
    line = "answers in a paragraph, asked in each language"
    paper = "Clark et al. 2020"
    licence = "Apache-2.0, text CC BY-SA 3.0"
    layouts: ClassVar = (
        Layout("tydiqa/{language}.{split}.json"),
        Layout("tydiqa/tydiqa-goldp-v1.1-{split}/tydiqa-goldp-{split}-{name}.json"),
        Layout("tydiqa/tydiqa.goldp.{language}.{split}.json"),
        Layout("tydiqa/tydiqa-goldp-v1.1-{split}.json", LANGUAGES),
        *hub("tydiqa", "secondary_task", LANGUAGES),
    )

    @override
    def read(self, part: Part) -> list[Question]:
        """A file may have all languages: question ids that begin with one (`swahili-`) are its."""
        others = {english_name(code) for code in LANGUAGES if code != part.language}
        return [
            question
            for path in part.files
            for question in read_questions(path)
            if question.id.partition("-")[0] not in others
        ]
