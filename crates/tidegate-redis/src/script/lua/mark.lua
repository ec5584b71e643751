-- Notes that units of a state are gone without a receipt, for as long as one of an earlier take could be good.
local function mark(state, marked)
  local left = call('PTTL', state)
  if left == -2 then return false end
  call('SET', marked, format('%.0f', now), 'PX', format('%.0f', left < 0 and 86400000 or math.max(left, 1)))
  return true
end
