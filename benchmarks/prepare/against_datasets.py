"""Tokenizing beside `datasets`: the same text, tokenizer and number of processes, in one run.

    python -m benchmarks.prepare.against_datasets WORK [--data DATA] [--megabytes 40]

`datasets` reads lines and maps a Hugging Face tokenizer over them; Isoglot reads, cleans, looks for
duplicates and tokenizes. Both write Arrow files and must give the same ids. Each has as many cores
as processes. Isoglot's tokenizer is once the one it trained, once the same taken from its folder
(SentencePiece encodes for both), and once the same as a stranger's, without its SentencePiece model
(the tokenizers library encodes, as in `datasets`).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from itertools import chain
from pathlib import Path

from benchmarks.prepare.memory import LANGUAGES, settings, write_raw
from benchmarks.prepare.watch import watch

from isoglot.corpus import Corpus
from isoglot.corpus.tokenization.sentencepiece import MODEL_FILE

MAP = """
import sys, json, time
from datasets import load_dataset
from transformers import AutoTokenizer
files, tokenizer, out, processes = json.loads(sys.argv[1])
tokenizer = AutoTokenizer.from_pretrained(tokenizer)
started = time.monotonic()
lines = load_dataset("text", data_files=files, split="train", cache_dir=out)
read = time.monotonic() - started
ids = lines.map(
    lambda rows: {"ids": tokenizer(rows["text"], add_special_tokens=False)["input_ids"]},
    batched=True, num_proc=processes, remove_columns=["text"],
)
print(json.dumps([read, time.monotonic() - started - read, len(ids)]))
ids.save_to_disk(out + "/ids")
"""


def on_cores(number: int, command: list[str]) -> list[str]:
    return ["taskset", "-c", ",".join(map(str, range(number))), *command]


def stages(said: str) -> dict[str, float]:
    """Seconds of each stage, as `isoglot prepare` tells them."""
    line = next(line for line in reversed(said.splitlines()) if "MB/s in all" in line)
    parts = (part.split() for part in line.split(":", 1)[0].split(", "))
    return {name: float(seconds) for name, seconds, _ in parts}


def main() -> None:
    parser = argparse.ArgumentParser(description="MB/s beside datasets.")
    parser.add_argument("work", type=Path, help="folder to write into")
    parser.add_argument("--data", type=Path, default=os.environ.get("ISOGLOT_DATA"))
    parser.add_argument("--megabytes", type=int, default=40)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    given = parser.parse_args()
    if given.data is None:
        parser.error("name the data folder with --data or ISOGLOT_DATA")
    work, size = given.work, given.megabytes
    shutil.rmtree(work, ignore_errors=True)
    write_raw(given.data, work, size)
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_DATASETS_CACHE": str(work / "cache")}
    file, tokenizer = work / "prepare.yaml", work / "trained" / "tokenizer"
    trained = settings("vocab_size: 16000, max_sentences: 50000") + "heldout_share: 0\n"
    taken = settings(f"folder: '{tokenizer.resolve()}'") + "heldout_share: 0\n"
    strange = settings(f"folder: '{(work / 'stranger').resolve()}'") + "heldout_share: 0\n"
    for processes in given.processes:
        for name, chosen in (("trained", trained), ("taken", taken), ("a stranger's", strange)):
            if name == "a stranger's" and not (work / "stranger").exists():
                shutil.copytree(tokenizer, work / "stranger")
                (work / "stranger" / MODEL_FILE).unlink()
            # the tokenizer that is taken lies in the first corpus, which stays
            out = work / ("again" if tokenizer.exists() else "trained")
            shutil.rmtree(out, ignore_errors=True)
            file.write_text(chosen, encoding="utf-8")
            command = [sys.executable, "-m", "isoglot", "prepare", str(file), "--out", str(out)]
            command += ["--workers", str(processes)]
            seen = watch(on_cores(processes, command), environment)
            found = stages(seen.said)
            whole = sum(found.values()) - found["tokenizer"]
            print(
                f"{processes} processes, isoglot, tokenizer {name}: all stages {size / whole:.1f} "
                f"MB/s, encoding alone {size / found['encode']:.1f} MB/s; {seen.cpu:.0f} s of CPU, "
                f"with tokenizer and start",
                flush=True,
            )
        files = sorted(map(str, (work / "raw").glob("*.txt")))
        out = work / "map"
        arguments = json.dumps([files, str(tokenizer), str(out), processes])
        command = on_cores(processes, [sys.executable, "-c", MAP, arguments])
        seen = watch(command, environment)
        read, mapped, _ = json.loads(next(x for x in seen.said.splitlines() if x.startswith("[")))
        print(
            f"{processes} processes, datasets: reading and map {size / (read + mapped):.1f} MB/s, "
            f"map alone {size / mapped:.1f} MB/s; {seen.cpu:.0f} s of CPU with start",
            flush=True,
        )
        _compare(work)
        shutil.rmtree(out)


def _compare(work: Path) -> None:
    """The ids of every row that Isoglot kept are those that `datasets` has for the line."""
    from datasets import load_from_disk

    corpus = Corpus.open(work / "trained", verify="never")
    theirs = set(map(tuple, load_from_disk(str(work / "map" / "ids"))["ids"]))
    tables = [corpus.table("text", language, "train") for language in LANGUAGES]
    rows = chain.from_iterable((t.ids("ids", row) for row in range(t.num_rows)) for t in tables)
    kept = [tuple(row.tolist()) for row in rows]
    assert set(kept) <= theirs
    print(f"  the ids of all {len(kept):,} rows are the same")


if __name__ == "__main__":
    main()
