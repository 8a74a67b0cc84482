-- Wakes this session when an operator asks for a test of a channel.
listen tocsin_channel_test
