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
