-- Takes units off the entries of one instant. Those that follow are numbered anew, if they are few.
local key, at, clear, cost = KEYS[1], unpacked('<ddd', ARGV[1], 2)
if now >= clear then return 0 end
local instant = format('%.0f', at)
local first = math.max(1, call('ZCOUNT', key, '-inf', '(' .. instant))
local last = call('ZCOUNT', key, '-inf', instant) - 1
local size = call('ZCARD', key)
if last < first or size - 1 - last > 64 then return 0 end
local before = tonumber(call('ZRANGE', key, first - 1, first - 1)[1])
local through = tonumber(call('ZRANGE', key, last, last)[1])
local taken = math.min(cost, through - before)
local goal = through - taken
local cut = search(key, first, last, goal + 1)
local previous = tonumber(call('ZRANGE', key, cut - 1, cut - 1)[1])
local later = call('ZRANGE', key, last + 1, -1, 'WITHSCORES')
if goal == before and first == 1 and not later[1] then
  call('DEL', key)
  return taken == cost and 1 or 0
end
call('ZREMRANGEBYRANK', key, cut, -1)
if previous < goal then call('ZADD', key, instant, pad(goal)) end
for i = 1, #later, 2 do call('ZADD', key, later[i + 1], pad(tonumber(later[i]) - taken)) end
return taken == cost and 1 or 0
