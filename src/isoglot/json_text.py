"""JSON of files that anybody may have written: every fault of it is a `JSONDecodeError`."""

from __future__ import annotations

import json
from json import JSONDecodeError
from typing import Any


def parse(text: str | bytes) -> Any:
    """The value of a JSON text.

    Raises:
        JSONDecodeError: it is no JSON (a `ValueError`), not UTF-8, nested more deeply than Python
            can read, or holds a number of thousands of digits.
    """
    try:
        return json.loads(text)
    except JSONDecodeError:
        raise
    except RecursionError:
        raise JSONDecodeError("it is nested too deeply", "", 0) from None
    except ValueError as error:  # not UTF-8, or Python's limit on the digits of a number
        raise JSONDecodeError(str(error), "", 0) from None
