-- Every append notifies; a lost notification costs at most one poll.
listen tocsin_log
