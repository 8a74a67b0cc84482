-- This worker ends: it is counted no more.
delete from tocsin.lane_worker where holder = %(holder)s
