-- The database of `tocsin up`. Its launcher holds the data directory, so nobody else makes it at the same time.
create database tocsin
