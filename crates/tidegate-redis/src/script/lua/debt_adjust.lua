local key, packs, from = KEYS[1], ARGV[1], 2
local old, begin = call('GET', key), begin_of(ARGV[3])
local begun = begin and not debt_is_live(old)
if begun then
  if not begin.known then return 3 end
  old = begin.state
end
--- debt_read
local owed, owed_ticks = minus(clear, ticks, now, 0)
local whole
if ARGV[2] == 'charge' then
  local most, most_ticks = least(depth, depth_ticks, minus(1152921504606846, 15615, now, 0))
  local room, room_ticks = minus(most, most_ticks, owed, owed_ticks)
  whole = not less(room, room_ticks, price, price_ticks)
  owed, owed_ticks = plus(owed, owed_ticks, least(price, price_ticks, room, room_ticks))
else
  whole = not less(owed, owed_ticks, price, price_ticks)
  owed, owed_ticks = minus(owed, owed_ticks, price, price_ticks)
end
if old or owed + owed_ticks > 0 then write_debt(key, now + owed, owed_ticks) end
return whole and 1 or 0
