"""A prepared corpus to rows: streams, permutation, mixture, packing, loader. No models here."""
