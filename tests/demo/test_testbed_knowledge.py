"""The generated world as a store of knowledge."""

import numpy as np
import pytest
from rich.console import Console
from transformers import AutoTokenizer

from isoglot.corpus import Corpus
from isoglot.demo.testbed_corpus import generated_corpus
from isoglot.demo.testbed_knowledge import has_knowledge, write_knowledge
from isoglot.testbed import World

LANGUAGES = ("en", "tr")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = generated_corpus(
        tmp_path_factory.mktemp("world"),
        Console(quiet=True),
        languages=LANGUAGES,
        num_sentences=400,
        num_pairs=50,
        num_concepts=30,
        max_entities=20,
        num_pages=60,
        vocab_size=600,
    )
    return Corpus.open(folder)


def test_the_store_holds_the_worlds_knowledge(corpus):
    world, knowledge = World(num_concepts=30, max_entities=20), corpus.knowledge
    names = list(world.entity_names("en").values())
    assert [knowledge.label(number) for number in range(len(names))] == names
    tokenizer = AutoTokenizer.from_pretrained(corpus.tokenizer_folder)
    for language in LANGUAGES:
        for number, found in enumerate(world.descriptions(language)):
            tokens = knowledge.descriptions(language)[number]
            wanted = tokenizer(found.text, add_special_tokens=False)["input_ids"]
            assert tokens.tolist() == wanted[:256]
    triples = [knowledge.triples(split) for split in ("train", "heldout")]
    assert sum(map(len, triples)) == len(world.triples())
    relations = knowledge.relations.strings("label")
    for triple in world.triples():
        subject, thing = (
            list(world.entity_names("en")).index(entity)
            for entity in (triple.subject, triple.object)
        )
        assert thing in knowledge.objects(subject, relations.index(triple.relation))


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_tokens_of_a_mention_spell_its_name(corpus, language):
    knowledge = corpus.knowledge
    tokenizer = AutoTokenizer.from_pretrained(corpus.tokenizer_folder)
    names = list(World(num_concepts=30, max_entities=20).entity_names(language).values())
    mentions, sentences = (f(language, "train") for f in (knowledge.mentions, knowledge.sentences))
    assert len(mentions) > 100
    for row in range(len(mentions)):
        tokens = sentences.tokens("tokens", int(mentions["sentence"][row]))
        spelled = tokenizer.decode(tokens[mentions["start"][row] : mentions["end"][row]])
        assert names[mentions["entity"][row]] in spelled
    pages = {
        split: set(knowledge.sentences(language, split)["page"]) for split in ("train", "heldout")
    }
    assert pages["heldout"]
    assert not pages["train"] & pages["heldout"]


def test_it_is_written_once_and_again_when_it_no_longer_fits(corpus, tmp_path):
    world = World(num_concepts=30, max_entities=20)
    assert has_knowledge(corpus.folder)
    about = corpus.folder / "knowledge/knowledge.json"
    before = about.stat().st_mtime_ns
    write_knowledge(corpus.folder, world, LANGUAGES, 60)
    assert about.stat().st_mtime_ns == before
    fingerprint = corpus.knowledge.fingerprint
    about.write_text(about.read_text().replace(corpus.knowledge.manifest.tokenizer, "another"))
    assert not has_knowledge(corpus.folder)
    write_knowledge(corpus.folder, world, LANGUAGES, 60)
    assert Corpus.open(corpus.folder).knowledge.fingerprint == fingerprint
    assert np.array_equal(corpus.knowledge.triples("train")["subject"][:1], [0])
