return (ARGV[2] == 'charge' and charge or refund)(KEYS[1], p)
