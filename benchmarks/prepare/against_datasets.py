"""Tokenizing beside `datasets`: the same text, tokenizer and number of processes, in one run.

    python -m benchmarks.prepare.against_datasets WORK [--data DATA] [--megabytes 40]
        [--processes 2] [--folders xlm-r wordpiece bpe trained]

`datasets` reads lines and maps a Hugging Face tokenizer over them; Isoglot reads, cleans, looks for
duplicates and tokenizes. Both write Arrow files and must give the same ids for every row that
Isoglot keeps. Each has as many cores as processes. Text is paragraphs of 24 languages, normalized
before, so that cleaning changes none; the tokenizers are those of `folders.py`, and one that
Isoglot trains (once, before the race).

Seconds are on the clock; those of the processors beside them change less with other work on the
machine, and include the start of Python and the opening of the tokenizer, on both sides.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np
from benchmarks.prepare.folders import save_bpe, save_wordpiece, save_xlm_r, write_paragraphs
from benchmarks.prepare.watch import watch

from isoglot.corpus import Corpus

FOLDERS = ("xlm-r", "wordpiece", "bpe", "trained")
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
    lambda rows: {
        "ids": tokenizer(
            rows["text"], add_special_tokens=False, return_attention_mask=False,
            return_token_type_ids=False, split_special_tokens=True, verbose=False,
        )["input_ids"]
    },
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
    parts = (part.rsplit(" ", 2) for part in line.split(":", 1)[0].split(", "))
    return {name: float(seconds) for name, seconds, _ in parts}


def settings(languages: list[str], tokenizer: str) -> str:
    files = ", ".join(f"{language}: ['raw/{language}.txt']" for language in languages)
    return (
        f"sources: {{text: {{files: {{{files}}}}}}}\ntokenizer: {{{tokenizer}}}\nheldout_share: 0\n"
    )


class Race:
    """The text, and what both sides make of it."""

    def __init__(self, work: Path, data: Path, megabytes: int) -> None:
        self.work = work
        sizes = write_paragraphs(data, work / "raw", megabytes)
        self.languages, self.size = list(sizes), sum(sizes.values())
        self.environment = {
            **os.environ,
            "HF_HUB_OFFLINE": "1",
            "HF_DATASETS_CACHE": str(work / "cache"),
            "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
        }

    def folder(self, name: str, data: Path) -> Path:
        """The folder of a tokenizer, made if it is not there."""
        folder = self.work / "tokenizers" / name
        if folder.is_dir():
            return folder
        if name == "xlm-r":
            save_xlm_r(data, folder)
        elif name == "wordpiece":
            save_wordpiece(data, folder)
        elif name == "bpe":
            save_bpe(sorted((self.work / "raw").glob("*.txt")), folder)
        else:
            self.prepare("vocab_size: 16000, max_sentences: 50000", 2)
            shutil.copytree(self.work / "corpus" / "tokenizer", folder)
        return folder

    def prepare(self, tokenizer: str, processes: int) -> tuple[dict[str, float], float]:
        """Seconds of each stage, and of the processors."""
        out, file = self.work / "corpus", self.work / "prepare.yaml"
        shutil.rmtree(out, ignore_errors=True)
        file.write_text(settings(self.languages, tokenizer), encoding="utf-8")
        command = [sys.executable, "-m", "isoglot", "prepare", str(file), "--out", str(out)]
        command += ["--workers", str(processes)]
        seen = watch(on_cores(processes, command), self.environment)
        return stages(seen.said), seen.cpu

    def map(self, tokenizer: Path, processes: int) -> tuple[float, float, float]:
        """Seconds of reading and of `map`, and of the processors."""
        out = self.work / "map"
        shutil.rmtree(out, ignore_errors=True)
        files = sorted(map(str, (self.work / "raw").glob("*.txt")))
        arguments = json.dumps([files, str(tokenizer), str(out), processes])
        command = on_cores(processes, [sys.executable, "-c", MAP, arguments])
        seen = watch(command, self.environment)
        read, mapped, _ = json.loads(next(x for x in seen.said.splitlines() if x.startswith("[")))
        return read, mapped, seen.cpu

    def compare(self) -> int:
        """The ids of every row that Isoglot kept are those of a line; how many rows there are."""
        from datasets import load_from_disk

        corpus = Corpus.open(self.work / "corpus", verify="never")
        theirs: set[bytes] = set()
        for rows in load_from_disk(str(self.work / "map" / "ids")).iter(10_000):
            theirs.update(np.array(row, np.int32).tobytes() for row in rows["ids"])
        kept = 0
        for language in self.languages:
            table = corpus.table("text", language, "train")
            for row in range(table.num_rows):
                found = np.asarray(table.ids("ids", row), np.int32).tobytes()
                assert found in theirs, f"row {row} of {language} has other ids"
            kept += table.num_rows
        return kept


def main() -> None:
    parser = argparse.ArgumentParser(description="MB/s beside datasets.")
    parser.add_argument("work", type=Path, help="folder to write into")
    parser.add_argument("--data", type=Path, default=os.environ.get("ISOGLOT_DATA"))
    parser.add_argument("--megabytes", type=int, default=40)
    parser.add_argument("--processes", type=int, nargs="+", default=[2])
    parser.add_argument("--folders", nargs="+", default=list(FOLDERS), choices=FOLDERS)
    given = parser.parse_args()
    if given.data is None:
        parser.error("name the data folder with --data or ISOGLOT_DATA")
    shutil.rmtree(given.work, ignore_errors=True)
    race = Race(given.work.resolve(), given.data, given.megabytes)
    print(f"{race.size:.1f} MB of {len(race.languages)} languages; load {os.getloadavg()[0]:.1f}")
    print("| tokenizer | processes | | all, MB/s | tokenizing alone | CPU s | MB/CPU s | rows |")
    print("|---|--:|---|--:|--:|--:|--:|--:|")
    for name in given.folders:
        folder = race.folder(name, given.data)
        for processes in given.processes:
            found, cpu = race.prepare(f"folder: '{folder}'", processes)
            read, mapped, their_cpu = race.map(folder, processes)
            size, rows = race.size, race.compare()
            whole = sum(found.values()) - found["tokenizer"]
            for who, everything, encoding, seconds in (
                ("Isoglot", whole, found["encode"], cpu),
                ("`datasets.map`", read + mapped, mapped, their_cpu),
            ):
                print(
                    f"| {name} | {processes} | {who} | {size / everything:.1f} | "
                    f"{size / encoding:.1f} | {seconds:.0f} | {size / seconds:.2f} | {rows:,} |"
                )
            print(
                f"| | | times as fast | {(read + mapped) / whole:.1f} | "
                f"{mapped / found['encode']:.1f} | | {their_cpu / cpu:.1f} | |",
                flush=True,
            )


if __name__ == "__main__":
    main()
