-- A statement that would wait longer than this for somebody's lock is tried again another time.
set lock_timeout = '500ms'
