"""Model folders that somebody else made: with code, with pickles, damaged in many ways."""

from __future__ import annotations

import json
import pickle
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import load_file, save_file
from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Callable

CODE = """
from pathlib import Path
Path({marker!r}).write_text("ran")
from transformers import {config}, {model}, {tokenizer}
class EvilConfig({config}):
    model_type = "evil"
class EvilModel({model}):
    config_class = EvilConfig
class EvilTokenizer({tokenizer}):
    pass
"""


class Marker:
    """An object whose unpickling writes a file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    @override
    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return Path.write_text, (self.file, "ran")


def change_json(file: Path, **changes: Any) -> None:
    """Change keys of a JSON file."""
    content = json.loads(file.read_text()) if file.is_file() else {}
    file.write_text(json.dumps(content | changes))


def add_code(folder: Path, marker: Path, *, model_type: str | None) -> None:
    """Make a config and a tokenizer name code of the folder, which writes the marker."""
    code = CODE.format(
        marker=str(marker),
        config="XLMRobertaConfig",
        model="XLMRobertaForMaskedLM",
        tokenizer="PreTrainedTokenizerFast",
    )
    (folder / "evil.py").write_text(code)
    classes = ("AutoModel", "AutoModelForMaskedLM", "AutoModelForSequenceClassification")
    models = dict.fromkeys(classes, "evil.EvilModel")
    own = {} if model_type is None else {"model_type": model_type}
    change_json(folder / "config.json", auto_map={"AutoConfig": "evil.EvilConfig", **models}, **own)
    change_json(
        folder / "tokenizer_config.json",
        auto_map={"AutoTokenizer": ["evil.EvilTokenizer", "evil.EvilTokenizer"]},
        tokenizer_class="EvilTokenizer",
    )


def pickle_weights(folder: Path, marker: Path, name: str = "pytorch_model.bin") -> None:
    """Replace the weights by a pickle that writes the marker."""
    with (folder / name).open("wb") as file:
        pickle.dump({"weight": Marker(marker)}, file)
    (folder / "model.safetensors").unlink(missing_ok=True)


def pickle_behind_index(folder: Path, marker: Path) -> None:
    """An index of safetensors that names a pickle."""
    names = list(load_file(folder / "model.safetensors"))
    pickle_weights(folder, marker)
    index = {"metadata": {}, "weight_map": dict.fromkeys(names, "pytorch_model.bin")}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    save_file({"x": torch.zeros(1)}, folder / "other.safetensors")


def mutations() -> dict[str, Callable[[Path], None]]:
    """Ways to damage a model folder, by name."""
    found: dict[str, Callable[[Path], None]] = {}
    for key, values in _CONFIG_VALUES.items():
        for value in values:
            found[f"config {key}={json.dumps(value)[:24]}"] = _set("config.json", key, value)
    for key, value in _TOKENIZER_VALUES:
        name = f"tokenizer_config {key}={json.dumps(value)[:24]}"
        found[name] = _set("tokenizer_config.json", key, value)
    for file in ("config.json", "tokenizer_config.json", "tokenizer.json"):
        for label, content in _CONTENTS.items():
            found[f"{file} is {label}"] = _write(file, content)
    for section, value in _TOKENIZER_SECTIONS:
        found[f"tokenizer {section}={json.dumps(value)[:24]}"] = _set(
            "tokenizer.json", section, value
        )
    for label, content in _CONTENTS.items():
        found[f"config: language embeddings are {label}"] = _write(
            "language_embeddings.safetensors", content
        )
        found[f"tokenizer: pretokenization is {label}"] = _write("pretokenize.json", content)
    found |= {f"weights {label}": change for label, change in _WEIGHTS.items()}
    found |= {f"index {label}": _index(content) for label, content in _INDICES.items()}
    return found


def _set(file: str, key: str, value: Any) -> Callable[[Path], None]:
    return lambda folder: change_json(folder / file, **{key: value})


def _write(file: str, content: bytes) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        (folder / file).write_bytes(content)

    return apply


_CONFIG_VALUES: dict[str, list[Any]] = {
    "model_type": ["evil", 7, None, [], "gpt2", "t5", "bert", "modernbert", "deberta-v2"],
    "num_hidden_layers": [-1, 0, "2", 10**9, 2.5, None],
    "hidden_size": [0, -32, 33, 10**9, "32", None],
    "num_attention_heads": [0, -1, 3, 10**9],
    "vocab_size": [0, -1, 3, 10**10, "many"],
    "max_position_embeddings": [0, 1, -5, 10**10],
    "intermediate_size": [0, -1, 10**9],
    "pad_token_id": [-1, 10**6, "x", None],
    "hidden_act": ["evil", 3, None],
    "layer_norm_eps": ["x", -1.0],
    "type_vocab_size": [0, -1, 10**9],
    "hidden_dropout_prob": [7, -1, "x"],
    "quantization_config": [{"quant_method": "gptq", "bits": 4}, "evil"],
    "transformers_weights": ["adapter_model.bin", "../x.safetensors"],
    "attn_implementation": ["evil/kernel", "nothing"],
    "_attn_implementation": ["evil/kernel"],
    "dtype": ["float1", 3],
    "architectures": [["os.system"], 3],
    "is_decoder": [True],
    "is_encoder_decoder": [True],
    "auto_map": ["x", 3],
    "id2label": [3],
    "language_token_ids": [{"aa": 5}, 3],
    "language_embeddings": [{"tokens": "all"}, 3],
}
_TOKENIZER_VALUES: list[tuple[str, Any]] = [
    ("tokenizer_class", "EvilTokenizer"),
    ("tokenizer_class", 3),
    ("auto_map", 3),
    ("mask_token", 3),
    ("mask_token", None),
    ("pad_token", None),
    ("model_max_length", "x"),
    ("added_tokens_decoder", {"x": "y"}),
    ("added_tokens_decoder", 3),
    ("extra_special_tokens", {"evil": 3}),
    ("chat_template", "{{ 7 * 7 }}"),
]
_CONTENTS = {
    "empty": b"",
    "a list": b"[]",
    "a number": b"3",
    "not UTF-8": b"\xff\xfe{}",
    "cut": b'{"model_type": "xlm-rob',
    "deep": b"[" * 100_000,
    "an empty object": b"{}",
}
_TOKENIZER_SECTIONS: list[tuple[str, Any]] = [
    ("model", None),
    ("model", {"type": "Unigram", "unk_id": 10**6, "vocab": [["a", 0.0]]}),
    ("model", {"type": "Evil"}),
    ("normalizer", {"type": "Replace", "pattern": {"Regex": "("}, "content": ""}),
    ("normalizer", {"type": "Precompiled", "precompiled_charsmap": "AAAA"}),
    ("pre_tokenizer", {"type": "Split", "pattern": {"Regex": "(a+)+b"}, "behavior": "x"}),
    ("post_processor", {"type": "TemplateProcessing", "single": [], "pair": [], "special": 3}),
    ("added_tokens", [{"id": 10**9, "content": "a", "special": True}]),
    ("truncation", {"max_length": 0, "strategy": "LongestFirst", "stride": 5}),
]


def _tensors(change: Callable[[dict[str, torch.Tensor]], object]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        weights = load_file(folder / "model.safetensors")
        change(weights)
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})

    return apply


def _header(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        data = (folder / "model.safetensors").read_bytes()
        (size,) = struct.unpack("<Q", data[:8])
        header = json.loads(data[8 : 8 + size])
        change(header)
        text = json.dumps(header).encode()
        packed = struct.pack("<Q", len(text)) + text + data[8 + size :]
        (folder / "model.safetensors").write_bytes(packed)

    return apply


def _first(header: dict[str, Any]) -> dict[str, Any]:
    entry: dict[str, Any] = next(v for k, v in header.items() if k != "__metadata__")
    return entry


def _bytes(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        file = folder / "model.safetensors"
        file.write_bytes(change(file.read_bytes()))

    return apply


def _fill(name: str, value: float) -> Callable[[Path], None]:
    return _tensors(lambda w: next(t for k, t in w.items() if name in k).view(-1)[:1].fill_(value))


_WEIGHTS: dict[str, Callable[[Path], None]] = {
    "NaN": _fill("word_embeddings", float("nan")),
    "infinite": _fill("layer.0", float("inf")),
    "missing": lambda folder: (folder / "model.safetensors").unlink(),
    "empty": _bytes(lambda _: b""),
    "cut": _bytes(lambda data: data[: len(data) // 2]),
    "header cut": _bytes(lambda data: data[:20]),
    "header too long": _bytes(lambda data: struct.pack("<Q", 2**60) + data[8:]),
    "text": _bytes(lambda _: b"version https://git-lfs.github.com/spec/v1\n"),
    "half of the tensors": _tensors(lambda w: [w.pop(k) for k in list(w)[::2]]),
    "no tensor": _tensors(lambda w: w.clear()),
    "renamed": _tensors(lambda w: w.update({f"x.{k}": w.pop(k) for k in list(w)})),
    "transposed": _tensors(lambda w: w.update({k: v.T.contiguous() for k, v in w.items()})),
    "integers": _tensors(lambda w: w.update({k: v.int() for k, v in w.items()})),
    "another type": _header(lambda h: _first(h).update(dtype="EVIL")),
    "offsets beyond": _header(lambda h: _first(h).update(data_offsets=[0, 2**50])),
    "negative shape": _header(lambda h: _first(h).update(shape=[-1, -1])),
    "huge shape": _header(lambda h: _first(h).update(shape=[2**40, 2**40])),
    "metadata numbers": _header(lambda h: h.update(__metadata__={"format": 3})),
    "of tensorflow": _header(lambda h: h.update(__metadata__={"format": "tf"})),
}
_INDICES: dict[str, Any] = {
    "of a pickle": {"metadata": {}, "weight_map": {"x": "pytorch_model.bin"}},
    "outside": {"metadata": {}, "weight_map": {"x": "../../model.safetensors"}},
    "absolute": {"metadata": {}, "weight_map": {"x": "/etc/passwd.safetensors"}},
    "of a missing file": {"metadata": {}, "weight_map": {"x": "model-00001.safetensors"}},
    "without a map": {"metadata": {}},
    "of numbers": {"metadata": {}, "weight_map": {"x": 3}},
    "a list": [],
}


def _index(content: Any) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        (folder / "model.safetensors").unlink()
        (folder / "model.safetensors.index.json").write_text(json.dumps(content))

    return apply
