local look, spend, refuse = {}, {}, {}
-- The state that a key without a live one begins with, and the time until which that is known. Only asks under limits
-- that others were before have one.
local function begin_of(pack)
  if not pack or #pack < 9 or string.byte(pack) ~= 98 then return nil end
  return {known = now < unpacked('<d', pack, 2), state = #pack > 9 and string.sub(pack, 10) or nil}
end
local stale = {stale = true}
