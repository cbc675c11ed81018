"""Distillation: what the teacher reads, what is compared, and losses against the obvious ones."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from accelerate import Accelerator
from transformers import AutoModelForMaskedLM, AutoTokenizer

from isoglot.batching.loader import Loader, open_streams
from isoglot.batching.planner import BatchConfig
from isoglot.batching.streams import TextStream
from isoglot.corpus.tokenization.vocabulary import open_tokenizer
from isoglot.errors import CorpusError, ModelError, RecipeError
from isoglot.models.config import ModelConfig
from isoglot.models.encoder import Encoder
from isoglot.objectives.distill import Distill, PreparedDistill
from isoglot.objectives.masking import Masking, build_sequence
from isoglot.objectives.mlm import MLM
from isoglot.objectives.token_alignment import shared_tokens
from isoglot.pretraining.config import LossConfig
from isoglot.pretraining.optimizers.optimizer import OptimizerConfig, make_optimizer
from isoglot.pretraining.train_module import TrainModule
from isoglot.pretraining.train_step import StageContext, training_steps
from isoglot.types import Cursor
from tests.models.transplant.tiny_tokenizers import model_for, of_words, wordpiece
from tests.tiny_corpus import words

MATCH = ("word_states", "sentence_mean", "logits")
LONGEST = 60


@pytest.fixture(scope="module", params=["bytes", "wordpiece"])
def teacher(request, tmp_path_factory):
    """A tiny teacher that has half of the words of `aa` and spells the others."""
    folder = tmp_path_factory.mktemp(request.param)
    known = words("aa")
    letters = "".join(sorted({letter for word in known for letter in word})) + "."
    if request.param == "bytes":
        of_words("bytes", folder, [*known[:60]], letters)
    else:
        pieces = [*known[:60], *letters, *(f"##{letter}" for letter in letters)]
        wordpiece(folder, pieces)
    return model_for(folder, architecture="xlm-r" if request.param == "bytes" else "bert")


def distill(corpus, teacher, **changes):
    settings = Distill(teacher=str(teacher), languages=("aa",), max_tokens=LONGEST, **changes)
    bound = settings.prepare(corpus)
    assert isinstance(bound, PreparedDistill)
    return bound


def makers_of(corpus, teacher, **changes):
    return {"mlm": MLM(masking=Masking(rate=0.3)), "distill": distill(corpus, teacher, **changes)}


def loader_of(corpus, makers, *, names=("distill", "mlm"), **stream):
    opened = open_streams(
        corpus, {"text": TextStream(objectives=names, **stream)}, makers, row_length=96
    )
    return Loader(corpus, opened, BatchConfig(rows=8, micro_rows=4, row_length=96))


def trainee_of(corpus, makers, *, dropout=0.0):
    torch.manual_seed(0)
    settings = ModelConfig(
        size="tiny", num_layers=2, hidden_size=24, num_heads=2, max_positions=96, dropout=dropout
    )
    encoder = Encoder.build(settings, corpus.vocabulary)
    return TrainModule(encoder, makers, corpus).double().train()


def sequences_of(rows):
    """(row, first place, stop) of every sequence."""
    found = []
    for row in range(len(rows.ids)):
        for number in range(int(rows.sequences[row].max()) + 1):
            places = torch.nonzero(rows.sequences[row] == number)[:, 0].tolist()
            found.append((row, places[0], places[-1] + 1))
    return found


def original_ids(batch):
    ids = batch.rows.ids.flatten().clone()
    ids[batch.target_positions] = torch.where(
        batch.target_weights > 0, batch.targets, ids[batch.target_positions]
    )
    return ids.reshape(batch.rows.ids.shape)


def naive(train_module, corpus, teacher, batch, match):  # noqa: C901 (slow and plain)
    """The sum of losses and what it is over: text by text, word by word, plain transformers."""
    model = AutoModelForMaskedLM.from_pretrained(teacher).double().eval()
    theirs = AutoTokenizer.from_pretrained(teacher)
    mine = open_tokenizer(corpus.tokenizer_folder)
    student = train_module.encoder
    states = student(batch.rows).hidden
    logits = student.model.lm_head(states)
    linear, temperature = train_module.objective("distill").map, 2.0
    hidden_flat = set(batch.target_positions[batch.target_weights > 0].tolist())
    ids = original_ids(batch)
    total, count = torch.zeros((), dtype=torch.float64), 0
    for row, start, stop in sequences_of(batch.rows):
        if int(batch.rows.languages[row, start]) != corpus.languages.index("aa"):
            continue
        sentences = batch.rows.sentences[row, start + 1 : stop - 1].tolist()
        own = ids[row, start + 1 : stop - 1].tolist()
        groups = [
            [token for token, of in zip(own, sentences, strict=True) if of == number]
            for number in dict.fromkeys(sentences)
        ]
        # words of a made-up language have no space in them: count them from left to right
        first_piece, whole_word, place = [], [], start + 1
        for group in groups:
            for token in group:
                piece = mine.convert_ids_to_tokens(token)
                if piece.startswith("▁"):
                    first_piece.append(place)
                    whole_word.append(True)
                else:
                    whole_word[-1] = whole_word[-1] and piece == "."
                place += 1
        text = " ".join(mine.decode(group) for group in groups)
        said = text.split()
        assert len(said) == len(first_piece)
        bare = [word.rstrip(".") for word in said]
        is_hidden = [
            [flat in hidden_flat for flat in _pieces(first_piece, word, row, stop)]
            for word in range(len(said))
        ]
        shown: list[int] = []
        starts, single = [], []
        for number, word in enumerate(bare):
            pieces = theirs(f" {word}", add_special_tokens=False)["input_ids"]
            with_dots = theirs(f" {said[number]}", add_special_tokens=False)["input_ids"]
            dots = with_dots[len(pieces) :]
            if match == "logits":
                covered = is_hidden[number]
                pieces = _hide(pieces, covered, mine, ids, row, first_piece, number, word, theirs)
                if dots and covered[-1]:
                    dots = [theirs.mask_token_id]
            starts.append(len(shown) + 1)
            single.append(len(pieces) == 1)
            shown += [*pieces, *dots]
        most = min(stop - start, LONGEST) - 2
        shown = shown[:most]
        read = torch.tensor([[theirs.cls_token_id, *shown, theirs.sep_token_id]])
        output = model(read, output_hidden_states=True)
        if match == "sentence_mean":
            mapped = linear(states[row, start:stop].mean(dim=0))
            total = total + (mapped - output.hidden_states[-1][0].mean(dim=0)).square().mean()
            count += 1
            continue
        for number in range(len(said)):
            if starts[number] > len(shown):
                continue
            at = first_piece[number]
            if match == "word_states":
                mapped = linear(states[row, at])
                theirs_state = output.hidden_states[-1][0, starts[number]]
                total = total + (mapped - theirs_state).square().mean()
                count += 1
            elif whole_word[number] and single[number] and row * 96 + at in hidden_flat:
                one, other = shared_tokens(corpus.tokenizer_folder, teacher)
                p = F.softmax(output.logits[0, starts[number]][other] / temperature, dim=0)
                q = F.log_softmax(logits[row, at][one] / temperature, dim=0)
                total = total + temperature**2 * (p * (p.log() - q)).sum()
                count += 1
    return total, count


def _pieces(first_piece, word, row, stop):
    """Flat places of all pieces of a word, its full stop among them."""
    end = first_piece[word + 1] if word + 1 < len(first_piece) else stop - 1
    return [row * 96 + place for place in range(first_piece[word], end)]


def _hide(pieces, covered, mine, ids, row, first_piece, number, word, theirs):
    """The teacher's pieces of a word, masks where they share a letter with a hidden piece."""
    letters, at = [], first_piece[number]
    for place, is_hidden in enumerate(covered):
        spelled = mine.convert_ids_to_tokens(int(ids[row, at + place])).removeprefix("▁")
        letters += [is_hidden] * len(spelled.rstrip(".") if spelled != "." else "")
    assert len(letters) == len(word)
    shown, at = [], 0
    for piece in pieces:
        size = len(theirs.convert_ids_to_tokens(piece).removeprefix("##").removeprefix("Ġ"))
        shown.append(theirs.mask_token_id if any(letters[at : at + size]) else piece)
        at += size
    return shown


@pytest.mark.parametrize("match", MATCH)
def test_loss_and_gradient_are_the_obvious_ones(corpus, teacher, match):
    makers = makers_of(corpus, teacher, match=match)
    train_module = trainee_of(corpus, makers)
    # one draw a sentence: a micro-batch then has texts of all languages
    batches = next(loader_of(corpus, makers, unit="sentence").steps(Cursor()))
    expected = [naive(train_module, corpus, teacher, batch, match) for batch in batches]
    loss, count = (sum(part) for part in zip(*expected, strict=True))
    assert count > 10
    assert sum(batch.num_targets["distill"] for batch in batches) == count
    weights = {name: w for name, w in train_module.named_parameters() if w.requires_grad}
    gradients = torch.autograd.grad(
        loss / count, list(weights.values()), allow_unused=True, materialize_grads=True
    )
    config = OptimizerConfig(
        learning_rate=0.0, max_grad_norm=None, schedule="constant", warmup_steps=0
    )
    stage = StageContext(
        module=train_module,
        wrapped=train_module,
        optimizer=make_optimizer(train_module.parameters(), config),
        optimizer_config=config,
        loss=LossConfig(),
        objectives={"mlm": MLM(weight=0.0), "distill": MLM(weight=1.0)},
        steps=1,
        seed=0,
    )
    (step,) = training_steps(stage, iter([batches]), Accelerator(cpu=True))
    assert step.losses["distill"] == pytest.approx((loss / count).item(), rel=1e-9)
    for (name, weight), gradient in zip(weights.items(), gradients, strict=True):
        assert weight.grad is not None
        assert torch.allclose(weight.grad, gradient, rtol=1e-6, atol=1e-11), name


def read_of(corpus, bound, text, hidden=()):
    """What the teacher reads of a text of `aa`, and the student's sequence."""
    ids = np.array(open_tokenizer(corpus.tokenizer_folder).encode(text, add_special_tokens=False))
    sentence = build_sequence(ids.astype(np.int32), 0, corpus.vocabulary)
    shown, targets = sentence.ids.copy(), sentence.targets.copy()
    for place in hidden:
        targets[place], shown[place] = shown[place], corpus.vocabulary.mask
    student = replace(sentence, ids=shown, targets=targets)
    (row,) = bound.build_from((student,), corpus.vocabulary, np.random.default_rng(0))
    return row, student


def test_guesses_are_made_without_the_hidden_word(corpus, teacher):
    """Another word in the hidden place, and the teacher reads the very same."""
    bound = distill(corpus, teacher, match="logits")
    one, two, context = words("aa")[0], words("aa")[3], words("aa")[1]
    tokenizer = open_tokenizer(corpus.tokenizer_folder)
    assert all(len(tokenizer.tokenize(word)) == 1 for word in (one, two, context))
    rows = [read_of(corpus, bound, f"{context} {w} {context}", hidden=[2])[0] for w in (one, two)]
    assert rows[0].ids.tolist() == rows[1].ids.tolist()
    assert (rows[0].ids == bound.tokenizers.vocabulary().mask).sum() == 1
    assert [rows[0].markers[side].tolist() for side in ("student", "teacher")] == [[2], [2]]
    (plain, _) = read_of(corpus, bound, f"{context} {one} {context}")
    assert not len(plain.markers["student"]), "what is shown is no guess"


def test_states_are_compared_at_first_pieces(corpus, teacher):
    bound, known = distill(corpus, teacher), words("aa")
    mine, theirs = open_tokenizer(corpus.tokenizer_folder), open_tokenizer(teacher)
    # the teacher spells the last word; there is room for its first piece only
    said = [*known[:4], next(word for word in known[100:] if len(theirs.tokenize(word)) > 1)]
    text = "{} {}. {} {}. {}".format(*said)
    row, student = read_of(corpus, bound, text, hidden=[1])
    places = row.markers["student"].tolist()
    pieces = mine.convert_ids_to_tokens(student.original()[places])
    assert [piece.startswith("▁") for piece in pieces] == [True] * 5
    assert row.markers["teacher"][0] == 1
    again = theirs.convert_ids_to_tokens(row.ids[row.markers["teacher"]])
    *others, last = [piece.strip("Ġ") for piece in again]
    assert others == said[:4]
    assert said[4].startswith(last)
    assert len(last) < len(said[4])
    assert bound.tokenizers.vocabulary().mask not in row.ids, "for states it reads the text whole"


def test_only_texts_of_the_teachers_languages_are_read(corpus, teacher):
    makers = makers_of(corpus, teacher)
    loader = loader_of(corpus, makers, unit="sentence")
    assert loader.planner.num_aux_rows["distill"] < 4, "room for the teacher's language only"
    mine = corpus.languages.index("aa")
    for batch in next(loader.steps(Cursor())):
        side = batch.aux_rows["distill"]
        assert set(side.languages[side.sequences >= 0].tolist()) <= {mine}
        places = batch.markers["distill"]["student"]
        assert set(batch.rows.languages.flatten()[places].tolist()) == {mine}
        assert len(places) == len(batch.aux_markers["distill"]["teacher"])


def test_one_cell_of_all_languages_is_read_too(corpus, teacher):
    loader = loader_of(corpus, makers_of(corpus, teacher), unit="sentence", sampling="epochs")
    (*batches,) = next(loader.steps(Cursor()))
    mine = corpus.languages.index("aa")
    for batch in batches:
        places = batch.markers["distill"]["student"]
        assert set(batch.rows.languages.flatten()[places].tolist()) == {mine}


def test_a_micro_batch_without_such_texts_has_no_loss(corpus, teacher):
    makers = makers_of(corpus, teacher)
    train_module = trainee_of(corpus, makers)
    (batch, *_) = next(loader_of(corpus, makers, languages=("bb", "cc")).steps(Cursor()))
    assert batch.num_targets["distill"] == 0
    sums = train_module(batch)
    assert sums["distill"].total.item() == 0
    sum(found.total for found in sums.values()).backward()
    assert all(
        weight.grad is not None for weight in train_module.objective("distill").map.parameters()
    ), "every process must have a gradient for every weight"


def test_a_sentence_that_was_cut_in_two_is_read_but_not_compared(corpus, teacher):
    """Its second half begins inside a word; what is hidden there may be anywhere in it."""
    tokenizer = open_tokenizer(corpus.tokenizer_folder)
    inside = [piece for piece in tokenizer.get_vocab() if piece.isalpha() and piece.isascii()]
    ids = tokenizer.convert_tokens_to_ids([min(inside), *tokenizer.tokenize(words("aa")[0])])
    sentence = build_sequence(np.array(ids, np.int32), 0, corpus.vocabulary)
    targets = sentence.targets.copy()
    targets[1] = sentence.ids[1]
    mask = open_tokenizer(teacher).mask_token_id
    for match in ("word_states", "logits"):
        bound = distill(corpus, teacher, match=match)
        student = replace(sentence, targets=targets)
        (row,) = bound.build_from((student,), corpus.vocabulary, np.random.default_rng(0))
        assert not len(row.markers["student"])
        assert len(row) > 2
        assert ((row.ids[1:-1] == mask) == (match == "logits")).all()


def test_the_teacher_is_frozen_and_without_dropout(corpus, teacher):
    makers = makers_of(corpus, teacher)
    train_module = trainee_of(corpus, makers, dropout=0.1)
    module = train_module.objective("distill")
    assert not module.teacher.training
    assert not any(weight.requires_grad for weight in module.teacher.parameters())
    (batch, *_) = next(loader_of(corpus, makers, languages=("aa",)).steps(Cursor()))
    said = []
    for _ in range(2):
        module.before_forward("distill", batch, None)
        said.append(module._teacher_output)
    assert said[0].equal(said[1])


def test_shared_tokens_spell_the_same(corpus, teacher):
    mine, theirs = shared_tokens(corpus.tokenizer_folder, teacher)
    names = [
        open_tokenizer(folder).convert_ids_to_tokens(ids.tolist())
        for folder, ids in ((corpus.tokenizer_folder, mine), (teacher, theirs))
    ]
    bare = [[name.strip("▁Ġ").removeprefix("##") for name in of] for of in names]
    assert bare[0] == bare[1]
    assert len(set(mine.tolist())) == len(set(theirs.tolist())) == len(mine) > 20


def test_faults_are_said(corpus, teacher, tmp_path):
    with pytest.raises(RecipeError, match=r"distill\.teacher: name the model"):
        Distill(languages=("aa",)).prepare(corpus)
    with pytest.raises(ModelError, match="There is no folder"):
        Distill(teacher=str(tmp_path / "none"), languages=("aa",)).prepare(corpus)
    with pytest.raises(CorpusError, match="has none of en; known: aa"):
        Distill(teacher=str(teacher)).prepare(corpus)
    encoder = trainee_of(corpus, {"mlm": MLM()}).encoder
    with pytest.raises(RecipeError, match="Set it to"):
        Distill(teacher=str(teacher), languages=("aa",)).build_module(encoder, corpus)
    with pytest.raises(RecipeError, match="does not exist in an encoder of 2 layers"):
        distill(corpus, teacher, layer=3).build_module(encoder, corpus)
    with pytest.raises(RecipeError, match="last layer"):
        Distill(match="logits", layer=1)
