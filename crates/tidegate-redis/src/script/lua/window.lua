-- Fixed window.

--== look
local function write_window(key, ends, count)
  call('SET', key, format('%.0f:%.0f', ends, count), 'PX', format('%.0f', (ends - now) / 1000 + grace))
end
local function read_window(old)
  if not old then return 0, 0 end
  local stored, counted = match(old, '^(%d+):(%d+)$')
  return tonumber(stored or ' '), tonumber(counted or ' ')
end
-- Returns the current window, without an end if that would exceed the representable time.
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
look.f = function(key, pack, begin)
  local amount, period, first_hit, most, units = unpacked('<ddBdd', pack, 2)
  local view = window(key, period, first_hit, most, begin)
  if view.err or view.stale then return view end
  view.passes = view.ends and units <= amount - view.count
  view.after = view.count + units
  return view
end
spend.f = function(key, _, view) write_window(key, view.ends, view.after) end
refuse.f = function(key, _, view)
  if view.moved then write_window(key, view.ends, view.count) end
end

--== change
local function adjust_window(key, view, cost, most, first_hit)
  local after = math.max(0, math.min(most, view.count + cost))
  if after == 0 and first_hit == 1 then
    call('DEL', key)
  else
    write_window(key, view.ends, after)
  end
  return after == view.count + cost and 1 or 0
end
local _, period, first_hit, most, cost = unpacked('<ddBdd', ARGV[1], 2)
local view = window(KEYS[1], period, first_hit, most, begin_of(ARGV[3]))
if view.err then return view end
if view.stale then return 3 end

--== adjust
if not view.ends then return 0 end
return adjust_window(KEYS[1], view, ARGV[2] == 'charge' and cost or -cost, most, first_hit)

--== give back
if now >= view.stored or view.stored ~= unpacked('<d', ARGV[1], 35) or not view.ends then return 0 end
return adjust_window(KEYS[1], view, -cost, most, first_hit)
