-- The database of `tocsin up`. Its launcher locks the data directory, so no other process creates it.
create database tocsin
