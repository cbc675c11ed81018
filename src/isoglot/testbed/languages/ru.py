"""Russian: subject, verb, object; cases and genders, no articles, no copula in the present."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from isoglot.testbed.languages.grammar import Grammar, Position
from isoglot.testbed.meaning import ADJECTIVE, CASE, COUNT, DEGREE, HEAD, NEGATION, TENSE, Tense
from isoglot.testbed.phrase import WordForm

if TYPE_CHECKING:
    from isoglot.testbed.meaning import Clause, Location, Quality, Thing
    from isoglot.testbed.phrase import Realization

NOT = WordForm("не", "PART", NEGATION)
ISLANDS = frozenset(["CU", "MG", "JM", "CY", "MT"])
"""Countries one is "на", not "в"."""
OBLIQUE = {
    "Египет": ("Египте", "Египта"),
    "Израиль": ("Израиле", "Израиля"),
    "Беларусь": ("Беларуси", "Беларуси"),
    "Северная Америка": ("Северной Америке", "Северной Америки"),
    "Южная Америка": ("Южной Америке", "Южной Америки"),
}
"""Names whose prepositional and genitive follow no simple rule."""
FEW = frozenset({"three", "four"})


def prepositional(name: str) -> str:
    """The case after "в": "Японии", "Китае"."""
    if name in OBLIQUE:
        return OBLIQUE[name][0]
    if name.endswith("ия"):
        return name[:-1] + "и"
    if name[-1] in "аяй" and not name.endswith("уа"):
        return name[:-1] + "е"
    return name if name[-1] in "аеиоу" else name + "е"


def genitive(name: str) -> str:
    """The case of the possessor: "Японии", "Китая"."""
    if name in OBLIQUE:
        return OBLIQUE[name][1]
    if name.endswith("а") and not name.endswith("уа"):
        return name[:-1] + ("и" if name[-2] in "гкхжшчщ" else "ы")
    if name.endswith("я"):
        return name[:-1] + "и"
    if name.endswith("й"):
        return name[:-1] + "я"
    return name if name[-1] in "аеиоу" else name + "а"


class Russian(Grammar):
    """Realizes meanings in Russian."""

    language = "ru"
    facts: ClassVar[dict[str, str]] = {
        "continent": "{s} —/PUNCT/5 страна/NOUN/0 {o:in}",
        "continent!": "часть/NOUN/0 света/NOUN/0 ,/PUNCT/3 где/ADV/4 находится/VERB/5 {s}"
        " ,/PUNCT/3 —/PUNCT/1 {o}",
        "official": "официальный/ADJ/2 язык/NOUN/0 {s:gen} —/PUNCT/5 {o}",
        "speak": "{s:in} говорят/VERB/01 {o:by}",
        "currency": "валюта/NOUN/0 {s:gen} —/PUNCT/5 {o}",
        "official?": "какой/DET/6 язык/NOUN/0 официальный/ADJ/2 {s:in}",
        "currency?": "какая/DET/6 валюта/NOUN/0 {s:in}",
    }

    @override
    def spaced(self, before: WordForm, form: WordForm) -> bool:
        return form.upos != "PUNCT" or form.form == "—"

    @override
    def make_thing(self, thing: Thing, case: str) -> tuple[WordForm, ...]:
        entry = self.lexicon[thing.noun]
        gender, word = entry.columns
        adjectives = []
        if thing.adjective:
            form = self._adjective(thing, gender, case)
            adjectives.append(WordForm(form, "ADJ", ADJECTIVE))
        if thing.number:
            number = WordForm(self.lexicon[thing.number].columns[0], "NUM", COUNT)
            noun = entry.options["g" if thing.number in FEW else "gp"]
            return (number, *adjectives, WordForm(noun, "NOUN"))
        if case == "acc":
            regular = {"а": word[:-1] + "у", "я": word[:-1] + "ю"}.get(word[-1], word)
            word = entry.options.get("acc", regular if gender == "f" else word)
        return (*adjectives, WordForm(word, "NOUN"))

    def _adjective(self, thing: Thing, gender: str, case: str) -> str:
        masculine, feminine, neuter = self.lexicon[thing.adjective].columns
        if thing.number:
            soft = masculine.endswith("ий") or masculine[-3] in "гкхжшчщ"
            nominative = gender == "f" and thing.number in FEW
            return masculine[:-2] + ("и" if soft else "ы") + ("е" if nominative else "х")
        if case == "acc" and gender == "f":
            return feminine[:-2] + ("юю" if feminine.endswith("яя") else "ую")
        if case == "acc" and gender == "m" and self.is_animate(thing):
            return neuter[:-1] + "го"
        return {"m": masculine, "f": feminine, "n": neuter}[gender]

    @override
    def make_verb(self, clause: Clause, agreement: str) -> tuple[WordForm, ...]:
        form = self.lexicon[clause.verb].columns[1 + clause.tense]
        if clause.tense == Tense.PAST and agreement == "f":
            form = form[:-2] + "ась" if form.endswith("ся") else form + "а"
        negation = [NOT] * clause.negated
        if " " in form:
            auxiliary, infinitive = form.split()
            return (*negation, WordForm(auxiliary, "AUX", TENSE), WordForm(infinitive, "VERB"))
        return (*negation, WordForm(form, "VERB", HEAD + TENSE))

    @override
    def clause(self, clause: Clause, position: Position) -> Realization:
        who = self.subject(clause.subject)
        does = self.verb(clause, self.gender(clause.subject))
        what, where, when = self.adjuncts(clause, "acc")
        if clause.fronted:
            return [*when, who, does, *what, *where]
        return [who, *when, does, *what, *where]

    @override
    def make_quality(self, quality: Quality, gender: str) -> tuple[WordForm, ...]:
        form = self.lexicon[quality.adjective].columns["mfn".index(gender)]
        return (
            *[NOT] * quality.negated,
            *[WordForm("очень", "ADV", DEGREE)] * quality.very,
            WordForm(form, "ADJ"),
        )

    @override
    def make_copula(self, location: Location) -> tuple[WordForm, ...]:
        return (*[NOT] * location.negated, WordForm("находится", "VERB", TENSE))

    @override
    def make_entity(self, entity: str, case: str) -> tuple[WordForm, ...]:
        name = self.names[entity]
        if case == "gen":
            return self.name_forms(entity, genitive(name))
        if case == "in":
            island = entity.removeprefix("territory:") in ISLANDS
            preposition = "на" if island else "во" if name.startswith(("Вь", "Фр")) else "в"
            forms = self.name_forms(entity, prepositional(name))
            return (WordForm(preposition, "ADP", CASE), *forms)
        if case == "by":
            if name.endswith("кий"):
                return self.name_forms(entity, f"по-{name[:-1]}")
            forms = self.name_forms(entity, "иврите" if name == "иврит" else name)
            return (WordForm("на", "ADP", CASE), *forms)
        return self.name_forms(entity)
