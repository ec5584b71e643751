-- KEYS[1], a value and milliseconds to live. It decides nothing: these three calls are what a limiter cannot do without.
redis.call('TIME')
redis.call('GET', KEYS[1])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
