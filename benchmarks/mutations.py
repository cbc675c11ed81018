"""Mutation testing: change one operator of the core, run its package's tests, count who notices.

    python -m benchmarks.mutations --number 200 --seed 0 --jobs 2 --out mutations.jsonl

A mutation replaces one operator (`<` by `<=`, `+` by `-`, `and` by `or`, `max` by `min`), drops a
`not` or a minus, or takes the next axis. Messages, annotations, docstrings and `assert`s are left
alone. The test file of the mutated module runs first, then the other quick tests of its package
and, with `--thorough`, of the packages that use it; the first failure or a time-out catches the
mutation. Results are appended to `--out` as they come, and mutations that are already there are
not run again. `--survivors FILE` runs those of a file that survived again, after tests were added;
they are found by the text of their line.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parent.parent
CORE = (
    "averaging.py",
    "results.py",
    "batching",
    "corpus/cooccurrence",
    "corpus/deduplication",
    "corpus/storage",
    "evaluation",
    "finetuning",
    "models",
    "objectives",
    "pretraining",
)
"""Where numbers are made: files and folders of src/isoglot."""
_COMPARE = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "=="}
_BINARY = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "*"}
_CALLS = {"min": "max", "max": "min", "any": "all", "all": "any", "argmax": "argmin"}
_AXES = ("axis", "dim")
_USED_BY = {
    "batching": ("objectives", "pretraining"),
    "corpus": ("objectives", "batching", "report", "cli"),
    "evaluation": ("report", "cli"),
    "finetuning": ("study", "cli"),
    "models": ("evaluation", "finetuning", "pretraining", "cli"),
    "objectives": ("pretraining",),
}
"""Folders of tests that use a package, for a thorough run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """One change of one file."""

    file: str
    line: int
    column: int
    end: int
    before: str
    after: str
    text: str
    """The line, without its indentation."""

    @property
    def key(self) -> str:
        """What tells it from other mutations."""
        return f"{self.file}:{self.line}:{self.column}: {self.before} -> {self.after}"


def mutations_of(path: Path) -> list[Mutation]:
    """Every mutation of a file."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    lines = text.split("\n")
    found: list[Mutation] = []

    def add(node: ast.expr, after: str) -> None:
        if node.lineno == node.end_lineno:
            line = lines[node.lineno - 1].encode()
            before = line[node.col_offset : node.end_col_offset].decode()
            found.append(
                Mutation(
                    file=path.relative_to(ROOT).as_posix(),
                    line=node.lineno,
                    column=node.col_offset,
                    end=node.end_col_offset or 0,
                    before=before,
                    after=after,
                    text=line.decode().strip(),
                )
            )

    for node in _code(tree):
        for after in _changes(node):
            add(node, after)
    return found


def _code(node: ast.AST) -> list[ast.expr]:
    """The expressions that decide numbers: no messages, annotations, raises or asserts."""
    found: list[ast.expr] = []
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "format_spec"):
            continue
        for inner in value if isinstance(value, list) else [value]:
            if not isinstance(inner, ast.AST):
                continue
            message = isinstance(inner, ast.Raise | ast.Assert | ast.JoinedStr)
            constant = isinstance(inner, ast.Expr) and isinstance(inner.value, ast.Constant)
            if message or constant or _is_typing(inner):
                continue
            number = isinstance(inner, ast.Constant)
            if isinstance(inner, ast.expr) and (not number or getattr(node, "arg", "") in _AXES):
                found.append(inner)
            found += _code(inner)
    return found


def _is_typing(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _changes(node: ast.expr) -> list[str]:
    """An expression with one operator changed, as text, for each way to change it."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARE:
            return [f"{ast.unparse(left)} {_COMPARE[type(op)]} {ast.unparse(right)}"]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            if any(isinstance(getattr(one, "value", None), str) for one in (left, right)):
                return []  # text is joined
            return [f"(({ast.unparse(left)}) {_BINARY[type(op)]} ({ast.unparse(right)}))"]
        case ast.BoolOp(op=op, values=values):
            word = " or " if isinstance(op, ast.And) else " and "
            return ["(" + word.join(f"({ast.unparse(one)})" for one in values) + ")"]
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            return [f"({ast.unparse(operand)})"]
        case ast.Call(func=ast.Name(id=name)) if name in _CALLS:
            return [_CALLS[name] + ast.unparse(node)[len(name) :]]
        case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in _CALLS:
            start = len(ast.unparse(value)) + 1
            text = ast.unparse(node)
            return [text[:start] + _CALLS[name] + text[start + len(name) :]]
        case ast.Constant(value=int() as value):
            return [str(value + 1)]
    return []


def core_mutations() -> list[Mutation]:
    """Every mutation of the core, in a fixed order."""
    files: list[Path] = []
    for name in CORE:
        path = ROOT / "src/isoglot" / name
        files += [path] if path.is_file() else sorted(path.rglob("*.py"))
    return [one for file in files for one in mutations_of(file)]


def runs_of_tests(file: str, *, thorough: bool) -> list[list[str]]:
    """The tests of a module, nearest first: its own file, its folder, its package, its users."""
    module = Path(file).relative_to("src/isoglot")
    own = Path("tests", *module.parts[:-1], f"test_{module.stem}.py").as_posix()
    folders = [
        Path("tests", *module.parts[:number]) for number in range(len(module.parts) - 1, 0, -1)
    ]
    if thorough:
        folders += [Path("tests", name) for name in _USED_BY.get(module.parts[0], ())]
    runs = [[own]] if (ROOT / own).is_file() else []
    seen = [own]
    for folder in folders:
        if (ROOT / folder).is_dir():
            ignored = [f"--ignore={one}" for one in seen if one.startswith(f"{folder.as_posix()}/")]
            runs.append([folder.as_posix(), *ignored])
            seen.append(folder.as_posix())
    return runs


def run(mutation: Mutation, copy: Path, seconds: float, *, thorough: bool) -> dict[str, object]:
    """Apply a mutation to a copy of the tree and run the tests until one fails."""
    path = copy / mutation.file
    original = path.read_text(encoding="utf-8")
    lines = original.split("\n")
    line = lines[mutation.line - 1].encode()
    changed = line[: mutation.column] + mutation.after.encode() + line[mutation.end :]
    lines[mutation.line - 1] = changed.decode()
    path.write_text("\n".join(lines), encoding="utf-8")
    started, caught = time.monotonic(), None
    try:
        for tests in runs_of_tests(mutation.file, thorough=thorough):
            caught = _first_failure(tests, copy, seconds)
            if caught is not None:
                break
    finally:
        path.write_text(original, encoding="utf-8")
    spent = round(time.monotonic() - started, 1)
    return {"key": mutation.key, "caught": caught, "seconds": spent, **asdict(mutation)}


def _first_failure(tests: list[str], copy: Path, seconds: float) -> str | None:
    options = [
        "-x",
        "-q",
        "--no-header",
        "-m",
        "not slow",
        "-p",
        "no:cacheprovider",
        "-W",
        "ignore",
    ]
    extra = os.environ.get("MUTATION_PYTEST", "").split()
    command = [sys.executable, "-m", "pytest", *options, *extra, *tests]
    path = os.pathsep.join([str(copy / "src"), str(copy), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "CI": "1"}
    try:
        done = subprocess.run(
            command,
            cwd=copy,
            env=environment,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "time-out"
    if done.returncode in (0, 5):  # all passed, or there is none
        return None
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0][:200] if failed else f"exit code {done.returncode}"


def _again(old: dict[str, Any], everything: Sequence[Mutation]) -> Mutation:
    """The same mutation in the present code, where its line may have moved."""
    same = [
        one
        for one in everything
        if all(getattr(one, name) == old[name] for name in ("file", "before", "after", "text"))
    ]
    if not same:
        sys.exit(f"{old['key']} is not in the code any more: draw a new sample.")
    return min(same, key=lambda one: abs(one.line - old["line"]))


def main() -> None:
    """Run mutations side by side and print the share that was caught."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--number", type=int, default=200, help="Mutations to draw.")
    parser.add_argument("--seed", type=int, default=0, help="Random seed of the draw.")
    parser.add_argument("--jobs", type=int, default=2, help="Mutations tested side by side.")
    parser.add_argument("--limit", type=float, default=300, help="Seconds of one test run.")
    parser.add_argument("--minutes", type=float, default=600, help="Start none after this time.")
    parser.add_argument("--out", type=Path, default=Path("mutations.jsonl"), help="Results.")
    parser.add_argument("--survivors", type=Path, help="Run the survivors of this file only.")
    parser.add_argument(
        "--thorough", action="store_true", help="Also run tests of packages that use the module."
    )
    options = parser.parse_args()
    everything = core_mutations()
    chosen = random.Random(options.seed).sample(everything, options.number)
    if options.survivors:
        text = options.survivors.read_text(encoding="utf-8")
        old = [json.loads(line) for line in text.splitlines()]
        chosen = [_again(one, everything) for one in old if not one["caught"]]
    done = {}
    if options.out.is_file():
        read = map(json.loads, options.out.read_text(encoding="utf-8").splitlines())
        done = {one["key"]: one for one in read}
    todo = [one for one in chosen if one.key not in done]
    print(f"{len(everything):,} mutations of the core, {len(todo)} to run", flush=True)
    stop = time.monotonic() + options.minutes * 60
    with tempfile.TemporaryDirectory() as folder:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(options.jobs):
            copy = Path(folder) / str(number)
            for part in ("src", "tests", "benchmarks", "docs"):
                shutil.copytree(
                    ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__")
                )
            for file in (
                *ROOT.glob("*.md"),
                *ROOT.glob("*.toml"),
                *ROOT.glob("*.yml"),
                ROOT / "Makefile",
                ROOT / "LICENSE",
            ):
                shutil.copy(file, copy / file.name)
            copies.put(copy)

        def one(mutation: Mutation) -> None:
            if time.monotonic() > stop:
                return
            copy = copies.get()
            try:
                found = run(mutation, copy, options.limit, thorough=options.thorough)
            finally:
                copies.put(copy)
            done[mutation.key] = found
            with options.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(found) + "\n")
            verdict = "caught  " if found["caught"] else "SURVIVED"
            print(f"{verdict} {found['seconds']:6.1f} s  {mutation.key}", flush=True)

        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(one, todo))
    ran = [done[mutation.key] for mutation in chosen if mutation.key in done]
    caught = sum(bool(one["caught"]) for one in ran)
    print(f"{caught} of {len(ran)} caught: {100 * caught / max(len(ran), 1):.1f} %")


if __name__ == "__main__":
    main()
