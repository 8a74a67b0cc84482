-- Set the watermark to an instant, as if everything that arrived before it had been read.
update tocsin.lane_partition set watermark = %(at)s
