local call = redis.call
local time, grace = ARGV[2], 5
if time then
  time, grace = {time, ARGV[3]}, 3600005
else
  time = call('TIME')
end
local now = time[1] * 1000000 + time[2] - 1704067200000000
if now < 0 then now = 0 end
local key, packs, from = KEYS[1], ARGV[1], 2
local old = call('GET', key)
--- debt_judge
if passes or cut then
  local format = string.format
  --- debt_write
end
return time[1] .. ' ' .. time[2] .. ' ' .. (old or '')
