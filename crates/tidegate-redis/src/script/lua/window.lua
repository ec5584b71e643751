-- Fixed window and calendar.
--
-- The state is text, `end:count`: the end of the window in microseconds, and the units counted in it. Windows are
-- aligned to the epoch of the scripts, or begin with the first request (`first-hit`), or are periods of a calendar.
-- `cut` says which: 0, 1, or the boundaries of some periods around the present one. The period of a calendar is a length
-- that no period exceeds.

--== look
-- Writes a window. The key expires shortly after its end.
local function write_window(key, ends, count)
  call('SET', key, format('%.0f:%.0f', ends, count), 'PX', format('%.0f', (ends - now) / 1000 + grace))
end
-- Returns end and count, zeros for a missing window, and nil for an invalid one.
local function read_window(old)
  if not old then return 0, 0 end
  local stored, counted = match(old, '^(%d+):(%d+)$')
  return tonumber(stored or ' '), tonumber(counted or ' ')
end
-- Returns the numbers of a pack: amount, period, cut, largest count, units.
local function numbers_of(pack)
  local amount, period, cut, most, units, rest = unpacked('<ddBdd', pack, 2)
  if string.byte(pack) == 107 then cut = {unpacked('<ddddd', pack, rest)} end
  return amount, period, cut, most, units
end
-- Returns the end of the current window, or the first end that is a whole window away. Nil if the boundaries do not
-- reach as far: the clock of the process that sent them is wrong, or this one.
local function end_of(period, cut, whole)
  if type(cut) == 'table' then
    for i = 1, 3 do
      if now >= cut[i] and now < cut[i + 1] then return cut[i + (whole and now > cut[i] and 2 or 1)] end
    end
    return nil
  end
  local ends = now + period
  if cut == 1 then return ends end
  if not whole then return ends - now % period end
  if ends % period > 0 then ends = ends + period - ends % period end
  return ends
end
-- Returns the current window, without an end if that would exceed the representable time. A stored window in the past
-- is replaced by an empty one. One that ends too far in the future, after a clock step back, is moved: it ends a
-- period from now, rounded up to the alignment.
local function window(key, period, cut, most, begin)
  local old = call('GET', key)
  local stored, counted = read_window(old)
  if not stored or stored > 1152921504606846 or counted > 9007199254740992 then
    return redis.error_reply('TIDEGATE a window is not end:count; delete the key, or use another prefix')
  end
  if begin and now >= stored then
    if not begin.known then return stale end
    old, stored, counted = nil, read_window(begin.state)
  end
  local ends, count = stored, math.min(counted, most)
  if now >= stored then
    ends, count = end_of(period, cut), 0
  elseif stored - now - period > math.max(period, 100000) then
    ends = end_of(period, cut, true)
  end
  if not ends then
    return redis.error_reply('TIDEGATE the clocks of this server and of the client are more than a calendar period apart; set them')
  end
  if ends > 1152921504606846 then ends = nil end
  local moved = old and ends and count > 0 and (ends ~= stored or count ~= counted)
  return {tell = old, stored = stored, ends = ends, count = count, moved = moved}
end
-- Decides whether the units fit into the current window. A window without a representable end denies everything.
look.f = function(key, pack, begin)
  local amount, period, cut, most, units = numbers_of(pack)
  local view = window(key, period, cut, most, begin)
  if view.err or view.stale then return view end
  view.passes = view.ends and units <= amount - view.count
  view.after = view.count + units
  return view
end
-- Writes the count with the units.
spend.f = function(key, _, view) write_window(key, view.ends, view.after) end
-- Writes a window that was moved or whose count was cut, so that the reported wait stays true.
refuse.f = function(key, _, view)
  if view.moved then write_window(key, view.ends, view.count) end
end
look.k, spend.k, refuse.k = look.f, spend.f, refuse.f

--== change
-- Adds units, or removes them if the cost is negative, between zero and the largest count. Returns 1 if all was
-- applied, 0 if a part.
local function adjust_window(key, view, cost, most, cut)
  local after = math.max(0, math.min(most, view.count + cost))
  if after == 0 and cut == 1 then
    call('DEL', key)
  else
    write_window(key, view.ends, after)
  end
  return after == view.count + cost and 1 or 0
end
-- The current window, for both kinds of changes. Returns 3 if the initial window has to be known first.
local _, period, cut, most, cost = numbers_of(ARGV[1])
local view = window(KEYS[1], period, cut, most, begin_of(ARGV[3]))
if view.err then return view end
if view.stale then return 3 end

--== adjust
-- A window that cannot be represented is not adjusted.
if not view.ends then return 0 end
return adjust_window(KEYS[1], view, ARGV[2] == 'charge' and cost or -cost, most, cut)

--== give back
-- Units are removed from the window of their take only: its end has to be the same.
if now >= view.stored or view.stored ~= unpacked('<d', ARGV[1], #ARGV[1] - 7) or not view.ends then return 0 end
return adjust_window(KEYS[1], view, -cost, most, cut)
