"""Deduplication: lines are hashed into partitions on disk and compared one partition at a time.

    file group --HashWriter--> hashes by partition --find_duplicates--> positions
               --collect_duplicates--> duplicate rows of each file group

A process holds the hashes of one partition at a time. Of equal lines the first in corpus order is
kept, whatever the number of partitions and workers.
"""
