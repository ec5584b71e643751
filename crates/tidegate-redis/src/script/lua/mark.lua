-- The mark of a state: the time at which units were last removed from it without a receipt.
--
-- A mark exists only for a while after a reset or a refund by hand.

--== write
-- Records that units of a state were removed without a receipt, for as long as a receipt of any earlier take could be
-- valid. An existing mark may concern takes that would have lasted longer.
local function mark(state, marked)
  local left = call('PTTL', state)
  if left == -2 then return false end
  left = math.max(left < 0 and 86400000 or left, call('PTTL', marked), 1)
  local last = math.max(now, tonumber(call('GET', marked) or 0))
  call('SET', marked, format('%.0f', last), 'PX', format('%.0f', left))
  return true
end

--== refund
-- A charge needs no mark.
if ARGV[2] == 'refund' then mark(KEYS[1], KEYS[2]) end

--== check
-- A take before the last mark, or before the clock stepped back, cannot be refunded.
local taken_at, marked_at = unpacked('<d', ARGV[2], 2), call('GET', KEYS[2])
if now + 100000 < taken_at or marked_at and taken_at <= tonumber(marked_at) then return 0 end
