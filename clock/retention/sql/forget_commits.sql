-- See tocsin.forget_commits; how many are gone.
select tocsin.forget_commits(%(most)s)
