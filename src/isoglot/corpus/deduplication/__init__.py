"""Deduplication: lines are hashed into buckets on disk and compared one bucket at a time.

    part of a file --HashWriter--> hashes by bucket --find_duplicates--> positions
                   --collect_duplicates--> duplicate rows of each part

A process holds the hashes of one bucket, or of a leaf of a large one, at a time. Of equal lines the
first in corpus order is kept, whatever the number of buckets and workers.
"""
