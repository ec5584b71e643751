-- Arithmetic with numbers that exceed the exact range of a double.
--
-- A script has doubles only. A pair holds a time to the tick; digits hold products of two such numbers. The results are
-- bit for bit those of the library, which uses integers of 128 bits.

--== pairs
-- Spans as pairs of whole microseconds and ticks. The savings of a pacer are such a pair too, in a finer unit. The
-- functions take and return the two parts of a pair as separate values, because a table for each would be slow.
local function less(one, one_ticks, other, other_ticks)
  return one < other or one == other and one_ticks < other_ticks
end
-- Carries ticks into microseconds.
local function plus(one, one_ticks, other, other_ticks)
  local ticks = one_ticks + other_ticks
  if ticks > 15999 then return one + other + 1, ticks - 16000 end
  return one + other, ticks
end
-- Saturates at zero.
local function minus(one, one_ticks, other, other_ticks)
  local whole, ticks = one - other, one_ticks - other_ticks
  if ticks < 0 then whole, ticks = whole - 1, ticks + 16000 end
  if whole < 0 then return 0, 0 end
  return whole, ticks
end
-- Returns the smaller of two pairs.
local function least(one, one_ticks, other, other_ticks)
  if less(one, one_ticks, other, other_ticks) then return one, one_ticks end
  return other, other_ticks
end
-- Multiplies by a small integer.
local function multiplied(whole, ticks, by)
  ticks = ticks * by
  return whole * by + math.floor(ticks / 16000), ticks % 16000
end
-- Rounds down; the last result is true if there was a remainder.
local function shared(whole, ticks, among)
  local rest = whole % among * 16000 + ticks
  return math.floor(whole / among), math.floor(rest / among), rest % among > 0
end

--== big
-- Integers of any size, as digits in base 2048, least significant first. A divisor may have 41 bits.
--
-- Converts a pair to ticks, as digits. The base is small enough that a digit times a digit, plus carries, is exact in a
-- double.
local function digits(whole, ticks)
  local all, carry = {}, ticks
  while whole > 0 or carry > 0 do
    local low = whole % 2048
    whole = (whole - low) / 2048
    local digit = low * 16000 + carry
    all[#all + 1] = digit % 2048
    carry = (digit - digit % 2048) / 2048
  end
  return all
end
-- Multiplies digit by digit. A product of digits with its carries stays below 2^53.
local function times(one, other)
  local product = {}
  for i = 1, #one + #other do product[i] = 0 end
  for i = 1, #one do
    local carry = 0
    for j = 1, #other do
      local digit = product[i + j - 1] + one[i] * other[j] + carry
      product[i + j - 1] = digit % 2048
      carry = (digit - digit % 2048) / 2048
    end
    product[i + #other] = carry
  end
  return product
end
-- Adds digit by digit.
local function sum(one, other)
  local all, carry = {}, 0
  for i = 1, math.max(#one, #other) + 1 do
    local both = (one[i] or 0) + (other[i] or 0) + carry
    all[i] = both % 2048
    carry = (both - all[i]) / 2048
  end
  return all
end
-- Divides in place, and returns the remainder.
local function divide(all, by)
  local rest = 0
  for i = #all, 1, -1 do
    local digit = rest * 2048 + all[i]
    all[i] = math.floor(digit / by)
    rest = digit - all[i] * by
  end
  return rest
end
-- Divides in place and rounds up.
local function divide_up(all, by)
  if divide(all, by) == 0 then return end
  local i = 1
  while all[i] == 2047 do
    all[i], i = 0, i + 1
  end
  all[i] = (all[i] or 0) + 1
end
-- Converts digits to a double. The caller makes sure that it fits.
local function number(all)
  local whole = 0
  for i = #all, 1, -1 do whole = whole * 2048 + all[i] end
  return whole
end
-- Returns true if the first number is at most the second. The numbers may have leading zeros. Missing digits count as
-- zero.
local function at_most(one, other)
  for i = math.max(#one, #other), 1, -1 do
    local left, right = one[i] or 0, other[i] or 0
    if left ~= right then return left < right end
  end
  return true
end
