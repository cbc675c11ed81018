"""Model weights, without data: encoders over packed rows, the LM head, decoders, export.

Encoder.build(settings, vocabulary)     rows -> States -> losses at target positions
Seq2Seq.build(settings, vocabulary)     an encoder with a decoder
export_encoder, export_seq2seq          a plain Hugging Face folder
export_sentence_transformers            a sentence-transformers folder
optimizations                           what is changed in a transformers model, and why
"""
