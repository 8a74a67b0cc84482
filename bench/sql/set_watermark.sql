-- Everything that arrived has been read.
update tocsin.lane_partition set watermark = %(at)s
