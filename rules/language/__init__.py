"""The languages inside documents: CEL conditions (`cel`) and Jinja texts (`templates`)."""
