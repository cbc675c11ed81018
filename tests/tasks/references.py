"""Slow scorers, each written from the official script's definition, sharing no code with ours."""

from __future__ import annotations

import re
import string
import unicodedata


def squad_words(text):
    kept = [c for c in text.lower() if c not in string.punctuation]
    words = re.split(r"\s+", re.sub(r"\b(?:a|an|the)\b", " ", "".join(kept)).strip())
    return [word for word in words if word]


ARTICLES = {
    "en": "a an the",
    "es": "un una unos unas el la los las",
    "vi": "của là cái chiếc những",
    "de": "ein eine einen einem eines einer der die das den dem des",
}


def mlqa_words(text, language):
    kept = ""
    for c in text.lower():
        if not unicodedata.category(c).startswith("P") and c not in string.punctuation:
            kept += c
    if language in ARTICLES:
        kept = re.sub(rf"\b(?:{'|'.join(ARTICLES[language].split())})\b", " ", kept)
    if language == "ar":
        kept = kept.replace("ال", " ")
    if language != "zh":
        return kept.split()
    words, word = [], ""
    for c in kept:
        if "\u4e00" <= c <= "\u9fa5":
            words += [*word.split(), c]
            word = ""
        else:
            word += c
    return words + word.split()


def f1(said, gold):
    left = list(gold)
    same = 0
    for word in said:
        if word in left:
            left.remove(word)
            same += 1
    if same == 0:
        return 0
    precision, recall = same / len(said), same / len(gold)
    return 2 * precision * recall / (precision + recall)


def squad(questions, predictions, words=squad_words):
    """The v1.1 script: percentages."""
    exact = total = 0.0
    for question, prediction in zip(questions, predictions, strict=True):
        said = words(prediction)
        golds = [words(answer.text) for answer in question.answers]
        exact += float(any(" ".join(said) == " ".join(gold) for gold in golds))
        total += max(f1(said, gold) for gold in golds)
    return {"exact": 100.0 * exact / len(questions), "f1": 100.0 * total / len(questions)}


def squad_v2(questions, predictions):
    """The v2.0 script: percentages of all, of those with answers and of those without."""
    found: dict[str, list[float]] = {}
    for question, prediction in zip(questions, predictions, strict=True):
        said = squad_words(prediction)
        golds = [squad_words(answer.text) for answer in question.answers]
        golds = [gold for gold in golds if gold] or [[]]
        best = max(f1(said, gold) if said and gold else float(said == gold) for gold in golds)
        for group in ("", "HasAns_" if question.answers else "NoAns_"):
            found.setdefault(f"{group}exact", []).append(float(said in golds))
            found.setdefault(f"{group}f1", []).append(best)
    return {name: 100.0 * sum(values) / len(values) for name, values in found.items()}


def squad_v2_best(questions, answers, odds):
    """The v2.0 script with probabilities of no answer: all thresholds tried one by one."""
    found = {}
    for name in ("exact", "f1"):
        tried = [(0.0, None)]  # a threshold below all odds: nothing is answered
        tried += [(odd, odd) for odd in sorted(odds)]
        best = None
        for threshold, at_most in tried:
            said = [
                answer if at_most is not None and odd <= at_most else ""
                for answer, odd in zip(answers, odds, strict=True)
            ]
            percent = squad_v2(questions, said)[name]
            if best is None or percent > best[0] + 1e-9:
                best = percent, threshold
        found[f"best_{name}"] = best
    return found
