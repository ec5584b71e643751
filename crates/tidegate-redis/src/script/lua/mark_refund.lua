if ARGV[2] == 'refund' then mark(KEYS[1], KEYS[2]) end
