select tocsin.instant()
