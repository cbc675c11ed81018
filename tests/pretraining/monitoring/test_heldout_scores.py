"""The line of a validation: change since the last one, best so far, by stage."""

from isoglot.pretraining.monitoring.heldout_scores import HeldoutLine


def record(step, perplexity, retrieval, stage=0, **more):
    return {
        "step": step,
        "stage": stage,
        "valid/mlm/de/perplexity": 99.0,
        "valid/mlm/mean/perplexity": perplexity,
        "valid/moco/mean/chance": 0.05,
        "valid/parallel/mean/retrieval": retrieval,
        "valid/parallel/pairs": 40,
        **more,
    }


def test_changes_and_bests():
    line = HeldoutLine()
    assert line(record(100, 12.0, 0.25)) == (
        "held out: mlm perplexity 12.00, moco chance 5.0 %, parallel retrieval 25.0 %"
    )
    assert line(record(200, 11.5, 0.3)) == (
        "held out: mlm perplexity 11.50 (-0.50, best), moco chance 5.0 %, parallel retrieval "
        "30.0 % (+5.0, best)"
    )
    later = line(record(300, 11.75, 0.225, **{"heldout/stale": 1}))
    assert "mlm perplexity 11.75 (+0.25, best 11.50 at 200)" in later
    assert later.endswith(
        "retrieval 22.5 % (-7.5, best 30.0 at 200); no improvement in 1 validation"
    )
    latest = line(record(400, 11.7, 0.3, **{"heldout/stale": 2}))
    assert "(-0.05, best 11.50 at 200)" in latest
    assert latest.endswith("30.0 % (+7.5, best 30.0 at 200); no improvement in 2 validations")


def test_a_resumed_run_remembers_and_a_new_stage_does_not():
    earlier = [record(100, 12.0, 0.25), record(200, 11.5, 0.3)]
    assert "(+0.50, best 11.50 at 200)" in HeldoutLine(earlier)(record(300, 12.0, 0.2))
    assert "(" not in HeldoutLine(earlier)(record(300, 12.0, 0.2, stage=1))
