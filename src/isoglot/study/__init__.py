"""A study: recipes and seeds pre-trained, fine-tuned, scored, and set side by side in one table.

recipes x seeds --pretrain--> models --evaluate--> scores --compare--> study.md, study.json
"""

from isoglot.study.compare import Row, compare
from isoglot.study.control import mlm_control, with_controls
from isoglot.study.run import Study, study
from isoglot.study.table import markdown

__all__ = ["Row", "Study", "compare", "markdown", "mlm_control", "study", "with_controls"]
