-- Complete states.

--== read
-- Returns complete states in their stored format. The argument holds the letters of the algorithms, after an unused
-- one.
local reply = {time[1], time[2]}
for i = 1, #KEYS do
  local letter = string.sub(ARGV[1], i + 1, i + 1)
  if letter == 'g' then
    reply[i + 2] = call('ZRANGE', KEYS[i], 0, -1, 'WITHSCORES')
  else
    local raw = call('GET', KEYS[i])
    reply[i + 2] = letter == 's' and raw and cmsgpack.unpack(raw) or raw
  end
end
return reply

--== reset
-- Deletes states and leaves a mark for each, so that receipts of earlier takes refund nothing. The keys are pairs of a
-- state and its mark. Returns the number of states that existed.
local found = 0
for i = 1, #KEYS, 2 do
  if mark(KEYS[i], KEYS[i + 1]) then found = found + call('DEL', KEYS[i]) end
end
return found
