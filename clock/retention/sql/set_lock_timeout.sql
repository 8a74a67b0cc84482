-- A statement that would wait longer than this for a lock fails and is tried again by a later run.
set lock_timeout = '500ms'
