-- See tocsin.forget_commits; returns how many are gone.
select tocsin.forget_commits(%(most)s)
