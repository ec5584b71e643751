-- KEYS[1], interval and capacity in microseconds: 1 if it passes, else 0. The least that a limiter can do.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local clear = math.max(tonumber(redis.call('GET', KEYS[1])) or 0, now) + ARGV[1]
if clear - now > tonumber(ARGV[2]) then return 0 end
redis.call('SET', KEYS[1], string.format('%.0f', clear), 'PX', math.ceil((clear - now) / 1000))
return 1
