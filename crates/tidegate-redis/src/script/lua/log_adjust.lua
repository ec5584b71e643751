local key, amount, period, _, cost = KEYS[1], unpacked('<ddBd', ARGV[1], 2)
local view = live_log(key, period, begin_of(ARGV[3]))
if view.err then return view end
if view.stale then return 3 end
if view.begun then
  view = write_begun(key, view, period)
  expire_log(key, view.at, period)
end
if ARGV[2] == 'charge' then
  record(key, view, {amount = amount, period = period}, math.min(cost, amount))
  return cost <= amount - view.count and 1 or 0
end
local refunded = math.min(cost, view.count)
local whole, total = refunded == cost and 1 or 0, view.total - refunded
if view.brought and total > view.left then
  write_alone(key, view.left, total, period)
elseif view.brought or total == 0 then
  call('DEL', key)
elseif refunded > 0 then
  local first = math.max(1, view.rank - 1)
  local last = search(key, first, call('ZCARD', key) - 1, total)
  local entry = call('ZRANGE', key, last, last, 'WITHSCORES')
  local base = tonumber(call('ZRANGE', key, 0, 0)[1])
  if base == total then
    call('DEL', key)
  elseif tonumber(entry[1]) == total then
    call('ZREMRANGEBYRANK', key, last + 1, -1)
  else
    call('ZREMRANGEBYRANK', key, last, -1)
    call('ZADD', key, entry[2], pad(total))
  end
end
return whole
