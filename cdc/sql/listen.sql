-- Every append notifies. A lost notification costs at most one poll interval.
listen tocsin_log
