-- Everything that arrived has been read.
update tocsin.ingest_partition set complete_until = %(at)s
