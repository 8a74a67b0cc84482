"""The screens, one module for each: what a page shows, read with the functions of the API."""
