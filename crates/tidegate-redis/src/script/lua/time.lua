-- The beginning of every script.
--
-- A test gives the time, and keys then live an hour longer: the server's own clock expires them.

--== time
-- The time in whole microseconds since 2024. A test passes it as the last two arguments, which begin with digits.
local call, format, match, unpacked = redis.call, string.format, string.match, struct.unpack
local n, time, grace = #ARGV, nil, 5
if string.byte(ARGV[n]) < 58 then
  n, time, grace = n - 2, {ARGV[n - 1], ARGV[n]}, 3600005
else
  time = call('TIME')
end
local now = time[1] * 1000000 + time[2] - 1704067200000000
if now < 0 then now = 0 end

--== asks
local look, spend, refuse, strike = {}, {}, {}, nil
-- The initial state of a key without a live state, and the time until which it is valid. Only asks under limits with
-- predecessors have one.
local function begin_of(pack)
  if not pack or #pack < 9 or string.byte(pack) ~= 98 then return nil end
  return {known = now < unpacked('<d', pack, 2), state = #pack > 9 and string.sub(pack, 10) or nil}
end
local stale = {stale = true}
