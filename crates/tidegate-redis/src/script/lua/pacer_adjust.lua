-- Puts the price back. Once a warming pacer has nothing saved, the permits are taken to have been fresh.
local function refund(key, p)
  local time, time_ticks, saved, saved_ticks
  if p.warms then
    saved, saved_ticks = p.saved, p.saved_ticks
    if saved + saved_ticks > 0 then saved, saved_ticks = plus(saved, saved_ticks, p.price, p.price_ticks) end
    time, time_ticks = time_of(p, least(saved, saved_ticks, p.full, p.full_ticks))
  else
    time, time_ticks = least(p.price, p.price_ticks, p.owed, p.owed_ticks)
    saved, saved_ticks = plus(p.saved, p.saved_ticks, minus(p.price, p.price_ticks, time, time_ticks))
  end
  local whole = not less(p.owed, p.owed_ticks, time, time_ticks)
    and not less(p.full, p.full_ticks, saved, saved_ticks)
  local owed, owed_ticks = minus(p.owed, p.owed_ticks, time, time_ticks)
  saved, saved_ticks = least(saved, saved_ticks, p.full, p.full_ticks)
  write_pace(key, p, owed, owed_ticks, saved, saved_ticks)
  return whole and 1 or 0
end
local function charge(key, p)
  local owed, owed_ticks = plus(p.owed, p.owed_ticks, time_of(p, p.saved, p.saved_ticks))
  local most, most_ticks = least(315360000000000, 0, minus(1152921504606846, 15615, p.at, 0))
  local whole = not less(most, most_ticks, owed, owed_ticks)
  owed, owed_ticks = least(owed, owed_ticks, most, most_ticks)
  write_pace(key, p, owed, owed_ticks, minus(p.saved, p.saved_ticks, p.price, p.price_ticks))
  return whole and 1 or 0
end
local p = pace_of(KEYS[1], ARGV[1], begin_of(ARGV[3]))
if p.err then return p end
if p.stale then return 3 end
