"""Files and corpora of object stores and the web, read by URL through fsspec.

urls          what is a URL
stores        the file system of a URL, and requests that are repeated after faults
faults        the faults that were survived, counted over all processes of a command
paths         a remote file as a path: streams, sizes, patterns
hub_datasets  datasets of the Hugging Face hub by name
corpora       a prepared corpus by URL: a local folder whose shards are fetched when they are read
cache         the files of such folders on this machine's disk, and their limit
upload        a finished corpus copied to a store
"""
