-- Spans as pairs of whole microseconds and ticks. What is saved is such a pair too, in a finer unit.
local function less(one, one_ticks, other, other_ticks)
  return one < other or one == other and one_ticks < other_ticks
end
local function plus(one, one_ticks, other, other_ticks)
  local ticks = one_ticks + other_ticks
  if ticks > 15999 then return one + other + 1, ticks - 16000 end
  return one + other, ticks
end
-- Never below nothing.
local function minus(one, one_ticks, other, other_ticks)
  local whole, ticks = one - other, one_ticks - other_ticks
  if ticks < 0 then whole, ticks = whole - 1, ticks + 16000 end
  if whole < 0 then return 0, 0 end
  return whole, ticks
end
local function least(one, one_ticks, other, other_ticks)
  if less(one, one_ticks, other, other_ticks) then return one, one_ticks end
  return other, other_ticks
end
local function multiplied(whole, ticks, by)
  ticks = ticks * by
  return whole * by + math.floor(ticks / 16000), ticks % 16000
end
-- Rounded down; with whether something was left over.
local function shared(whole, ticks, among)
  local rest = whole % among * 16000 + ticks
  return math.floor(whole / among), math.floor(rest / among), rest % among > 0
end
