-- KEYS[1], max_burst, count, period in seconds: the answer of CL.THROTTLE.
-- What is kept is the time, in microseconds, at which everything is repaid.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local burst = ARGV[1] + 1
local interval = ARGV[3] * 1000000 / ARGV[2]
local capacity = burst * interval
local owed = math.max((tonumber(redis.call('GET', KEYS[1])) or now) - now, 0)
local after = owed + interval
if after > capacity then
  local retry = math.ceil((after - capacity) / 1000000)
  return {1, burst, math.floor((capacity - owed) / interval), retry, math.ceil(owed / 1000000)}
end
redis.call('SET', KEYS[1], string.format('%.0f', now + after), 'PX', math.ceil(after / 1000))
return {0, burst, math.floor((capacity - after) / interval), -1, math.ceil(after / 1000000)}
