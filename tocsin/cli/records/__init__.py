"""Commands that read the record log and the streams."""
