-- Scheduled events so far.
select count(*) from tocsin.event where origin = 'scheduled'
