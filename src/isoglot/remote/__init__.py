"""Files and corpora of object stores and the web, read by URL through fsspec.

urls      what is a URL
stores    the file system of a URL, and requests that are repeated after faults
faults    the faults that were survived, counted over all processes of a machine
paths     a remote file as a path: streams, sizes, patterns
mirror    a prepared corpus by URL: a local folder whose shards are fetched when they are read
cache     the files of mirrors on this machine's disk, and their limit
"""
