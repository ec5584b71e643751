-- Sliding window.
--
-- A window is divided into slots of equal length, aligned to the epoch of the scripts. A strict window counts all slots
-- that overlap it; an estimate has one slot per period and weights the previous one by its overlap.

--== look
-- The state is an array: the number of the newest slot, the length of a slot, and the counts, newest first. Returns
-- false if the value is no such array: another program wrote it. Numbers are doubles in `MessagePack`, whole and not
-- negative.
local function read_slots(raw)
  local fine, slots = pcall(cmsgpack.unpack, raw)
  fine = fine and type(slots) == 'table' and #slots > 2
  for i = 1, fine and #slots or 0 do
    local word = slots[i]
    fine = fine and type(word) == 'number' and word >= 0 and word <= 9007199254740992 and word % 1 == 0
  end
  return fine and slots[2] > 0 and slots
end
-- Moves each count of other slots to the slot in which its own ended, or to the current one. Counts are never moved to
-- an earlier time than they were made, so a conversion admits nothing too early.
local function converted(old, newest, limit)
  local slots = {newest, limit.width}
  for i = 0, limit.slots do slots[i + 3] = 0 end
  for i = 0, old and #old - 3 or -1 do
    local ended = math.ceil((math.max(old[1] - i, 0) + 1) * old[2] / limit.width) - 1
    local age = math.max(0, newest - ended)
    if age <= limit.slots then slots[age + 3] = slots[age + 3] + old[i + 3] end
  end
  return slots
end
-- Returns the time at which the newest count leaves the last slot. Returns nil if all counts are zero.
local function slots_end(slots)
  local age = 0
  while slots[age + 3] == 0 do age = age + 1 end
  return slots[age + 3] and (slots[1] - age + #slots - 2) * slots[2]
end
-- Returns the counters with the current slot, and their age in slots. Stored slots are kept if they fit the limit, and
-- converted if its numbers have changed or the clock has stepped back.
local function slots_of(key, limit, begin)
  local raw = call('GET', key)
  local old = raw and read_slots(raw)
  if raw and not old then
    return redis.error_reply('TIDEGATE a window has strange slots; delete the key, or use another prefix')
  end
  local tell = old
  if begin and not (old and (slots_end(old) or 0) > now) then
    if not begin.known then return stale end
    old, tell = begin.state and read_slots(begin.state), nil
  end
  local slot, slots, moved = math.floor(now / limit.width), old, false
  local stays = math.max(limit.slots, math.floor(100000 / limit.width))
  if not old or old[2] ~= limit.width or #old ~= limit.slots + 3 or old[1] - slot > stays then
    slots, moved = converted(old, slot, limit), true
  end
  local view = {tell = tell, slots = slots, moved = tell and moved, limit = limit}
  -- A clock that reads earlier than the newest slot counts at its start.
  view.slot, view.age = math.max(slot, slots[1]), math.max(slot - slots[1], 0)
  view.into = slot < slots[1] and 0 or now - slot * limit.width
  return view
end
-- An empty state has no value, except for clock readings that are out of order by up to a tenth of a second. The key
-- expires when the newest count leaves the window.
local function write_slots(key, slots)
  local clear = slots_end(slots) or now + 100000
  call('SET', key, cmsgpack.pack(slots), 'PX', format('%.0f', math.max(0, clear - now) / 1000 + grace))
end
-- Returns the counters shifted, so that the newest is that of the current slot. The stored array stays as it is, for
-- denials that write nothing.
local function settled(view)
  local slots = {view.slot, view.limit.width}
  for i = 0, view.limit.slots do slots[i + 3] = i >= view.age and view.slots[i - view.age + 3] or 0 end
  return slots
end
-- Decides by the sum of all slots, or by the estimate.
look.s = function(key, pack, begin)
  local amount, width, count, estimate, most, units = unpacked('<dddBdd', pack, 2)
  local view = slots_of(key, {width = width, slots = count, most = most}, begin)
  if view.err or view.stale then return view end
  view.units = units
  local slots = settled(view)
  view.ready = slots
  -- The comparison is exact: products of counts and times exceed a double, so they are multiplied digit by digit.
  if estimate == 1 then
    -- The older slot counts in proportion to the part of it that the window still covers.
    local room, older = amount - units - slots[3], slots[4]
    view.passes = room >= 0 and (older <= room
      or at_most(times(digits(older, 0), digits(width - view.into, 0)), times(digits(room, 0), digits(width, 0))))
  else
    local total = 0
    for i = 3, #slots do total = total + slots[i] end
    view.passes = units <= amount - total
  end
  return view
end
-- Adds the units to the current slot.
spend.s = function(key, _, view)
  view.ready[3] = view.ready[3] + view.units
  write_slots(key, view.ready)
end
-- Writes converted slots, so that they are not converted again.
refuse.s = function(key, _, view)
  if view.moved then write_slots(key, view.slots) end
end

--== change
-- What both kinds of changes need: the slots, shifted to now. Returns 3 if the initial slots have to be known first.
local key, _, width, count, _, most, cost = KEYS[1], unpacked('<dddBdd', ARGV[1], 2)
local view = slots_of(key, {width = width, slots = count, most = most}, begin_of(ARGV[3]))
if view.err then return view end
if view.stale then return 3 end
local slots = settled(view)

--== adjust
-- A charge goes to the current slot, up to the largest count. A refund takes units from the newest slots first.
if ARGV[2] == 'charge' then
  local total = 0
  for i = 3, #slots do total = total + slots[i] end
  local charged = math.min(cost, math.max(0, most - total))
  slots[3], cost = slots[3] + charged, cost - charged
else
  for i = 3, #slots do
    local refunded = math.min(cost, slots[i])
    slots[i], cost = slots[i] - refunded, cost - refunded
  end
end
if view.tell or slots_end(slots) or ARGV[2] == 'charge' then write_slots(key, slots) end
return cost == 0 and 1 or 0

--== give back
-- Units are removed from the slot of their take only. It may have left the window.
if not view.tell then return 0 end
local age, returned = slots[1] - math.floor(unpacked('<d', ARGV[1], 43) / width), 0
if age >= 0 and age <= count then
  returned = math.min(cost, slots[age + 3])
  slots[age + 3] = slots[age + 3] - returned
end
write_slots(key, slots)
return returned == cost and 1 or 0
