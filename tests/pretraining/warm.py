"""Imported by the server that runs are forked from: everything slow that starts no thread."""

from importlib import import_module

import numba

import isoglot.api
import isoglot.models.sentence_export
import isoglot.models.seq2seq_export
import isoglot.pretraining.run
import isoglot.recipe.structure  # noqa: F401

import_module("pandas")  # pyarrow does, when it first hands out an array
numba.njit(lambda number: number)(1)  # loads the compiler
