-- The mark of a state: the time at which units of it were last taken off without a receipt.

--== write
-- Notes that units of a state are gone without a receipt, for as long as one of any earlier take could be good: a mark
-- that is there may be about takes that would have lasted longer.
local function mark(state, marked)
  local left = call('PTTL', state)
  if left == -2 then return false end
  left = math.max(left < 0 and 86400000 or left, call('PTTL', marked), 1)
  local last = math.max(now, tonumber(call('GET', marked) or 0))
  call('SET', marked, format('%.0f', last), 'PX', format('%.0f', left))
  return true
end

--== refund
if ARGV[2] == 'refund' then mark(KEYS[1], KEYS[2]) end

--== check
-- Nothing is left of a take from before the last mark, or from before the clock stepped back.
local taken_at, marked_at = unpacked('<d', ARGV[2], 2), call('GET', KEYS[2])
if now + 100000 < taken_at or marked_at and taken_at <= tonumber(marked_at) then return 0 end
