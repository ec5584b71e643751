-- Fixed window.
--
-- The state is text, `end:count`: the end of the window in microseconds, and the units counted in it. Windows are
-- aligned to the epoch of the scripts, or begin with the first request (`first-hit`).

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
-- Returns the current window, without an end if that would exceed the representable time. A stored window in the past
-- is replaced by an empty one. One that ends too far in the future, after a clock step back, is moved: it ends a
-- period from now, rounded up to the alignment.
local function window(key, period, first_hit, most, begin)
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
    ends, count = now + period - (first_hit == 1 and 0 or now % period), 0
  elseif stored - now - period > math.max(period, 100000) then
    ends = now + period
    if first_hit == 0 and ends % period > 0 then ends = ends + period - ends % period end
  end
  if ends > 1152921504606846 then ends = nil end
  local moved = old and ends and count > 0 and (ends ~= stored or count ~= counted)
  return {tell = old, stored = stored, ends = ends, count = count, moved = moved}
end
-- Decides whether the units fit into the current window. A window without a representable end denies everything.
look.f = function(key, pack, begin)
  local amount, period, first_hit, most, units = unpacked('<ddBdd', pack, 2)
  local view = window(key, period, first_hit, most, begin)
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

--== change
-- Adds units, or removes them if the cost is negative, between zero and the largest count. Returns 1 if all was
-- applied, 0 if a part.
local function adjust_window(key, view, cost, most, first_hit)
  local after = math.max(0, math.min(most, view.count + cost))
  if after == 0 and first_hit == 1 then
    call('DEL', key)
  else
    write_window(key, view.ends, after)
  end
  return after == view.count + cost and 1 or 0
end
-- The current window, for both kinds of changes. Returns 3 if the initial window has to be known first.
local _, period, first_hit, most, cost = unpacked('<ddBdd', ARGV[1], 2)
local view = window(KEYS[1], period, first_hit, most, begin_of(ARGV[3]))
if view.err then return view end
if view.stale then return 3 end

--== adjust
-- A window that cannot be represented is not adjusted.
if not view.ends then return 0 end
return adjust_window(KEYS[1], view, ARGV[2] == 'charge' and cost or -cost, most, first_hit)

--== give back
-- Units are removed from the window of their take only: its end has to be the same.
if now >= view.stored or view.stored ~= unpacked('<d', ARGV[1], 35) or not view.ends then return 0 end
return adjust_window(KEYS[1], view, -cost, most, first_hit)
