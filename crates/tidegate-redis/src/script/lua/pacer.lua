-- Pacer.
--
-- The state is text, `at:owed:ticks:saved:ticks:scale`: a time, the debt then, and the savings then. A debt is time
-- that granted permits have reserved. Savings are permits stored while idle, in a unit of intervals divided by `scale`.
--
-- A pacer without warm-up spends its savings first and for free. One with warm-up is as Guava's: permits cost more the
-- more are saved, by the area under a line from the cold to the stable interval.

--== look
-- Reads the debt and the savings; nil if the state is invalid. Under one limit the savings have one unit. `kept` and
-- `first` keep the state as stored, for denials and for giving back.
local function read_pace(p, old)
  p.last, p.owed, p.owed_ticks = 0, 0, 0
  p.saved, p.saved_ticks = p.warms and p.full or 0, p.warms and p.full_ticks or 0
  if old then
    local last, owed, owed_ticks, saved, saved_ticks, scale = match(old, '^(%d+):(%d+):(%d+):(%d+):(%d+):(%d+)$')
    if not last then return nil end
    p.last, p.owed, p.owed_ticks = tonumber(last), tonumber(owed), tonumber(owed_ticks)
    p.saved, p.saved_ticks = tonumber(saved), tonumber(saved_ticks)
    local largest = math.max(p.last, p.owed, p.saved)
    if largest > 1152921504606846 or p.owed_ticks > 15999 or p.saved_ticks > 15999 or scale * 1 ~= p.scale then
      return nil
    end
  end
  p.kept, p.kept_ticks, p.first_owed, p.first_owed_ticks = p.saved, p.saved_ticks, p.owed, p.owed_ticks
  return p
end
-- Returns the time at which the debt is repaid and the savings are full. A state at that time equals that of an unused
-- key.
local function rested_at(p, at, owed, owed_ticks, saved, saved_ticks)
  -- The savings grow by one unit in a tick divided by the scale, so the time is rounded up.
  local missing, missing_ticks, more = minus(p.full, p.full_ticks, saved, saved_ticks)
  missing, missing_ticks, more = shared(missing, missing_ticks, p.scale)
  if more then missing, missing_ticks = plus(missing, missing_ticks, 0, 1) end
  local clear, clear_ticks = plus(at, 0, plus(owed, owed_ticks, missing, missing_ticks))
  clear, clear_ticks = least(clear, clear_ticks, 1152921504606846, 15615)
  if not p.warms and less(clear, clear_ticks, p.full, p.full_ticks) then return p.full, p.full_ticks end
  return clear, clear_ticks
end
-- Returns true unless the state equals that of an unused key.
local function pace_is_live(p)
  return less(now, 0, rested_at(p, p.last, p.owed, p.owed_ticks, p.saved, p.saved_ticks))
end
-- Returns the debt and the savings now. The debt shrinks by the time that has passed; idle time after that is saved.
-- Returns `stale` if an initial state is needed and not known.
local function pace_of(key, pack, begin)
  local p = {}
  p.unlimited, p.own, p.scale, p.full, p.full_ticks, p.price, p.price_ticks, p.stable, p.stable_ticks, p.rest,
    p.max_wait, p.max_wait_ticks, p.warm_up, p.cold = unpacked('<BBddHdHdHddHdd', pack, 2)
  p.warms = p.cold > 0
  local old = call('GET', key)
  local readable = read_pace(p, old)
  p.tell = old
  if begin and readable and not (old and pace_is_live(p)) then
    if not begin.known then return stale end
    p.tell, readable = nil, read_pace(p, begin.state)
  end
  if not readable then
    return redis.error_reply('TIDEGATE a pace is strange; delete the key, or use another prefix')
  end
  -- After a clock step back of more than a tenth of a second, the state counts from now.
  p.at = p.last - now > 100000 and now or math.max(now, p.last)
  local passed = math.max(0, p.at - p.last)
  local idle, idle_ticks = minus(passed, 0, p.owed, p.owed_ticks)
  p.owed, p.owed_ticks = minus(p.owed, p.owed_ticks, passed, 0)
  -- An unlimited pacer has no interval, so nothing is saved or owed.
  if p.unlimited == 1 then
    p.saved, p.saved_ticks = p.warms and 0 or p.full, p.warms and 0 or p.full_ticks
  elseif p.warms and idle >= p.warm_up then
    p.saved, p.saved_ticks = p.full, p.full_ticks
  else
    idle, idle_ticks = multiplied(idle, idle_ticks, p.scale)
    p.saved, p.saved_ticks = plus(p.saved, p.saved_ticks, idle, idle_ticks)
    p.saved, p.saved_ticks = least(p.saved, p.saved_ticks, p.full, p.full_ticks)
  end
  return p
end
-- Returns the time that the price costs with these savings. Without warm-up the savings are free, and only the rest of
-- the price costs time.
local function time_of(p, saved, saved_ticks)
  if not p.warms then return minus(p.price, p.price_ticks, saved, saved_ticks) end
  local above, above_ticks = minus(saved, saved_ticks, p.warm_up * (1 + p.cold), 0)
  local slope, slope_ticks = least(above, above_ticks, p.price, p.price_ticks)
  if p.rest == 0 and (p.cold == 1 or slope + slope_ticks == 0) then return p.stable, p.stable_ticks end
  -- The part above the threshold costs more: the area under the line, rounded up once.
  local wide, wide_ticks = plus(above, above_ticks, minus(above, above_ticks, slope, slope_ticks))
  local dear = times(times(digits(wide, wide_ticks), digits(slope, slope_ticks)), {p.cold - 1})
  if p.rest > 0 then dear = sum(dear, digits(8 * p.warm_up * p.rest, 0)) end
  divide_up(dear, 16 * (1 + p.cold))
  divide_up(dear, p.warm_up)
  divide_up(dear, 16000)
  local ticks = divide(dear, 16000)
  return plus(p.stable, p.stable_ticks, number(dear), ticks)
end
-- Writes a state as of `p.at`. The key expires when the debt is repaid and the savings are full. Text keeps all digits
-- of both parts, which a packed double would not.
local function write_pace(key, p, owed, owed_ticks, saved, saved_ticks)
  local text = format('%.0f:%.0f:%d:%.0f:%d:%d', p.at, owed, owed_ticks, saved, saved_ticks, p.scale)
  local clear, ticks = rested_at(p, p.at, owed, owed_ticks, saved, saved_ticks)
  -- A key without debt and with full savings needs no state.
  if not p.tell and not less(now, 0, clear, ticks) then return end
  call('SET', key, text, 'PX', format('%.0f', math.max(0, clear - now) / 1000 + grace))
end
-- Returns the time until the debt is repaid. It is zero without debt, whatever the time of the state.
local function wait_of(p, owed, owed_ticks)
  if owed + owed_ticks == 0 then return 0, 0 end
  return owed + math.max(0, p.at - now), owed_ticks
end
-- Decides by the wait: until the debt before the permits is repaid, or after them if the limit charges each caller its
-- own time (`own`). No debt exceeds ten years, or the largest time. The result has the debt after the permits, for
-- `spend`.
look.p = function(key, pack, begin)
  local p = pace_of(key, pack, begin)
  if p.err or p.stale then return p end
  local time, time_ticks = time_of(p, p.saved, p.saved_ticks)
  p.after, p.after_ticks = plus(p.owed, p.owed_ticks, time, time_ticks)
  local wait, wait_ticks
  -- With `own`, a caller waits for its own permits too.
  if p.own == 1 then
    wait, wait_ticks = wait_of(p, p.after, p.after_ticks)
  else
    wait, wait_ticks = wait_of(p, p.owed, p.owed_ticks)
  end
  -- No state may end after the largest time.
  local left, left_ticks = minus(1152921504606846, 15615, p.at, 0)
  p.passes = not less(p.max_wait, p.max_wait_ticks, wait, wait_ticks)
    and not less(left, left_ticks, p.after, p.after_ticks)
    and not less(315360000000000, 0, p.after, p.after_ticks)
  return p
end
-- Adds the time to the debt, and removes the price from the savings.
spend.p = function(key, _, p)
  local saved, saved_ticks = minus(p.saved, p.saved_ticks, p.price, p.price_ticks)
  write_pace(key, p, p.after, p.after_ticks, saved, saved_ticks)
end
-- After the clock stepped back, the debt counts from now.
refuse.p = function(key, _, p)
  if p.tell and p.at < p.last then
    local text = format('%.0f:%.0f:%d:%.0f:%d:%d', p.at, p.first_owed, p.first_owed_ticks, p.kept,
      p.kept_ticks, p.scale)
    local clear = rested_at(p, p.at, p.first_owed, p.first_owed_ticks, p.kept, p.kept_ticks)
    call('SET', key, text, 'PX', format('%.0f', math.max(0, clear - now) / 1000 + grace))
  end
end

--== change
-- Refunds the price. Once a warming pacer has no savings, the permits are assumed to have been fresh. Without warm-up
-- the debt is shortened first, and the rest of the price goes back to the savings. Returns 1 if all was refunded, 0 if
-- a part.
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
-- Adds the price to the debt without a decision, up to ten years. Returns 1 if all of it was added, 0 if a part. The
-- savings are spent as by a take.
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

--== adjust
-- Selects the function by the word in the second argument.
return (ARGV[2] == 'charge' and charge or refund)(KEYS[1], p)

--== give back
-- Only the last grant can be given back: later grants are delayed behind it. The state has to end exactly when that of
-- the take did, otherwise nothing is given back.
local clear, ticks = unpacked('<dH', ARGV[1], 76)
local rests, rests_ticks = rested_at(p, p.last, p.first_owed, p.first_owed_ticks, p.kept, p.kept_ticks)
local used_up = p.warms and p.saved + p.saved_ticks == 0
if not p.tell or used_up or rests ~= clear or rests_ticks ~= ticks or not less(now, 0, clear, ticks) then return 0 end
return refund(KEYS[1], p)
