--- debt_read
-- When everything would be repaid after paying the price, and whether that is soon enough.
local passes = false
if not cut then
  clear, ticks = clear + price, ticks + price_ticks
  if ticks > 15999 then clear, ticks = clear + 1, ticks - 16000 end
  local last = now + bar
  passes = (clear < last or clear == last and ticks <= bar_ticks)
    and (clear < 1152921504606846 or clear == 1152921504606846 and ticks <= 15615)
end
