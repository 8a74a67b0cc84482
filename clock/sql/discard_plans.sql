-- The next execution of each statement plans again, for the present sizes of the tables.
discard plans
