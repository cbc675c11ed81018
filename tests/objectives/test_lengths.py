"""What every objective plans before it reads a text, by hand: lengths, positions, targets."""

from typing import Any

import numpy as np
import pytest

from isoglot.objectives.backtranslate import BackTranslate
from isoglot.objectives.btmlm import BTMLM
from isoglot.objectives.camlm import CAMLM
from isoglot.objectives.cooccurrence import Cooccurrence
from isoglot.objectives.denoise import Denoise
from isoglot.objectives.entailment import ObjectEntailment
from isoglot.objectives.entity import EntityPrediction
from isoglot.objectives.mass import MASS
from isoglot.objectives.mlm import MLM
from isoglot.objectives.moco import MoCo
from isoglot.objectives.template import ReplacedTokenDetection
from isoglot.objectives.tlm import TLM
from isoglot.objectives.token_contrast import TokenContrast

PLANNED: list[tuple[Any, list[int], list[int], int, int]] = [
    # objective, sizes of the example, lengths of its sequences, positions, target tokens
    (MLM(), [10], [12], 12, 2),
    (MLM(), [4, 6], [6, 8], 8, 2),
    (TLM(separator="single"), [4, 6], [13], 13, 2),
    (TLM(separator="double"), [4, 6], [14], 14, 2),
    (TLM(separator="both"), [4, 6], [14], 14, 2),
    # six of forty and nine of sixty tokens are asked for after the other side
    (CAMLM(), [40, 60], [42 + 9, 62 + 6], 40 + 60 + 3, 15),
    (CAMLM(positions="reset"), [40, 60], [51, 68], 62, 15),
    (CAMLM(slots="inline"), [40, 60], [42 - 6 + 9, 62 - 9 + 6], 103, 15),
    # ten slots after fifty tokens, at positions 53 to 62
    (BTMLM(), [50], [62, 62], 63, 8),
    (BTMLM(positions="reset"), [50], [62, 62], 52, 8),
    (BTMLM(positions="reset", pseudo_rate=1.0), [2], [6, 6], 4, 1),
    (MoCo(), [4, 6], [6, 8], 8, 0),
    (TokenContrast(), [4, 6], [6, 8], 8, 0),
    # half of the sentence and its end, after the language
    (MASS(), [9], [11, 6], 11, 5),
    (MASS(length="batch"), [9], [11, 11], 11, 10),
    (Denoise(), [9], [11, 10], 11, 10),
    (BackTranslate(), [10], [20, 11, 12], 20, 11),
    (EntityPrediction(), [40, 20], [42, 22], 42, 0),
    (EntityPrediction(variant="released"), [40, 20], [42, 22], 42, 6),
    (ObjectEntailment(), [20, 30], [22, 32], 32, 0),
    (Cooccurrence(), [10], [], 0, 0),
    (ReplacedTokenDetection(), [4, 6], [14], 14, 0),
]


@pytest.mark.parametrize(("objective", "sizes", "lengths", "positions", "targets"), PLANNED)
def test_what_is_planned(objective, sizes, lengths, positions, targets):
    given = np.array([sizes, sizes], np.int32)
    assert objective.lengths(given).tolist() == [lengths, lengths]
    assert objective.num_positions(given).tolist() == [positions, positions]
    assert objective.max_targets(given).tolist() == [targets, targets]
