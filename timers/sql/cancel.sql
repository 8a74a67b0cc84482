-- Cancel one timer. The function tocsin.cancel is in the migrations.
select tocsin.cancel(%s, %s, %s)
