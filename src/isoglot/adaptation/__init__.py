"""`isoglot adapt`: an encoder, text and translations in; a better encoder and the proof out.

    look (encoder, data, machine) --> plan --> prepare, grow, train --> score before and after

- `run.py` is the command. It takes a request (`request.py`), works in a folder (`folder.py`), shows
  its progress (`display.py`) and goes through the three files below.
- `look.py` gives the findings (`findings.py`, kept by `saved_findings.py`). Data are found
  (`inputs.py`, `formats.py`, `columns.py`), read once (`scan.py`), and held out (`heldout.py`).
- `plan.py` chooses (`choices.py`, `vocabulary.py`), with time and disk (`resources.py`) and the
  number of steps (`training_steps.py`); `plan_files.py` writes and reads the plan.
- `carry_out.py` takes the steps. `scoring.py` scores both encoders (`scores.py`, `comparison.py`),
  `page.py` shows the scores, `export.py` writes the folders and pushes them.
- Knowledge is counted (`knowledge_tables.py`), planned (`knowledge_plan.py`) and scored
  (`linking.py`).
"""
