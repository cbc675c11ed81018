"""Word alignment of files: translations in, the links between their words out.

pairs (`pair_files`) -> tokens (`word_tokens`) -> states of one layer (`layer_states`) -> links of
many pairs at a time (`aligner`, `batched_links`) -> lines in Pharaoh format (`align`). The aligners
are those of `evaluation.word_alignment`, which scores all layers, one pair at a time.
"""
