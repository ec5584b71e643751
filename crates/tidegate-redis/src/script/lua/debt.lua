-- Token bucket and leaky bucket. The state is the time at which the debt is repaid (the TAT of GCRA), in whole
-- microseconds, followed by the remaining ticks, if any.
--
-- A key expires at the end of the second in which its debt is repaid. If it is used again while in debt, it expires at
-- the end of the time block in which the debt is repaid; a minus before the state marks this. Such a debt grows within
-- its block by DECRBY, at half the cost of writing the state.
--
-- Spans and times are pairs of whole microseconds and ticks below 16,000, because a double cannot hold ticks since 2024
-- exactly. Most limits have no ticks, so most states are a plain integer.
--
-- Sections without functions (`grow`, `read`, `judge`, `write`, `add`) are included as text where they are needed. A
-- function call per limit would cost more than the decision. They use local names of the including section: `packs`,
-- `from`, `old`, `now`, `key`.
--
-- Three scripts take from buckets: `take one` for one limit, `take` for several, `take each` for several asks. `look`,
-- `spend` and `refuse` serve requests with other algorithms too.

--== grow
-- From `old` with a minus: `text`, the price as the argument of DECRBY, if only an addition is needed. If the debt
-- leaves its block, `late` is the time until the end of the new one. All other cases, including denials, are judged in
-- full.
--
-- The usual case of a key in debt: one command writes it.
local price, block, bar
price, block, bar, text = unpacked('<ddds', packs, from)
local clear = 0 - old
local after = clear + price
if clear <= now or after > now + bar or after > 1152921504606845 or text == '' then
  text = nil
elseif clear % block + price >= block then
  late = after - after % block + block - now
end

--== read
-- From `old`, `packs` from byte `from` on, and `now`: the time at which the debt is repaid, capped at the depth of the
-- limit. `was` is the second in which an existing debt would have been repaid. An invalid state is an error and stays
-- as it is. A debt deeper than the limit can have, after the clock stepped back, is cut to its depth; `cut` is then
-- true and the state is written even by a denial.
local price, block, bar, _, price_ticks, bar_ticks, depth, depth_ticks = unpacked('<dddc15HHdH', packs, from)
local clear, ticks, cut, was = now, 0, false, nil
-- A plain integer or a minus is converted by `tonumber`; a state with ticks by its pattern.
if old then
  clear = tonumber(old)
  if clear and clear < 0 then clear = -clear end
  if not clear then
    local whole, part = string.match(old, '^(%d+):(%d+)$')
    if not whole or part * 1 > 15999 then
      return redis.error_reply('TIDEGATE a debt is not a time; delete the key, or use another prefix')
    end
    clear, ticks = whole * 1, part * 1
  end
  if clear > now then was = (clear - clear % 1000000) / 1000000 end
  -- Only values outside the expected range are checked by patterns, because that is slow.
  if clear <= now or clear > now + depth or clear % 1 ~= 0 then
    if clear > 1152921504606846 or not (string.find(old, '^%d+:?%d*$') or string.find(old, '^%-%d%d%d%d%d%d%d+$')) then
      return redis.error_reply('TIDEGATE a debt is not a time; delete the key, or use another prefix')
    end
    -- Clock readings of a tenth of a second out of order are not a step back.
    local deepest = now + depth + 100000
    if clear < now then
      clear, ticks = now, 0
    elseif clear > deepest or clear == deepest and ticks > depth_ticks then
      clear, ticks, cut = now + depth, depth_ticks, true
      if clear > 1152921504606846 or clear == 1152921504606846 and ticks > 15615 then
        clear, ticks = 1152921504606846, 15615
      end
    end
  end
end

--== judge
--- read
-- The bar is the largest debt that the ask may leave. No time exceeds the largest of the library, 2^64 - 1 ticks.
-- The time at which the debt would be repaid after paying the price, and whether that is within the bar.
local passes = false
if not cut then
  clear, ticks = clear + price, ticks + price_ticks
  if ticks > 15999 then clear, ticks = clear + 1, ticks - 16000 end
  local last = now + bar
  passes = (clear < last or clear == last and ticks <= bar_ticks)
    and (clear < 1152921504606846 or clear == 1152921504606846 and ticks <= 15615)
end

--== write
-- A debt with ticks that grows within its second keeps its expiry.
local low = clear % 1000000
local high = (clear - low) / 1000000
local text = format(ticks == 0 and '%d%06d' or '%d%06d:%d', high, low, ticks)
if ticks > 0 and high == was then
  call('SET', key, text, 'KEEPTTL')
-- A key that is used again in debt gets the minus, so that the next take can add to it. With less than a second since
-- 2024 the text would start with zeros.
elseif ticks == 0 and block and was and high > 0 then
  text = '-' .. text
  call('PSETEX', key, format('%d', (clear - clear % block + block - now) / 1000 + grace), text)
else
  call('PSETEX', key, format('%d', (clear - low - now) / 1000 + 1000 + grace), text)
end

--== add
-- A state with a minus is a negative number, so a greater debt is a smaller number.
call('DECRBY', key, text)
if late then call('PEXPIRE', key, format('%d', late / 1000 + grace)) end

--== take one
-- One limit: the script with the fewest instructions, without tables and functions. The argument is one pack; two more
-- give the time in tests.
--
-- The reply is the time and the state before the take, on one line.
local call, unpacked, format = redis.call, struct.unpack, string.format
local time, grace = ARGV[2], 5
if time then
  time, grace = {time, ARGV[3]}, 3600005
else
  time = call('TIME')
end
local now = time[1] * 1000000 + time[2] - 1704067200000000
if now < 0 then now = 0 end
local key, packs, from = KEYS[1], ARGV[1], 2
local old = call('GET', key)
local text, late
if old and string.find(old, '^%-[1-9]%d*$') then
  --- grow
end
if text then
  --- add
else
  --- judge
  if passes or cut then
    --- write
  end
end
return time[1] .. ' ' .. time[2] .. ' ' .. (old or '')

--== take
-- Takes from several buckets, all or none. All packs are in one argument.
--- olds
local first, last, written = 1, #keys, nil
--- ask
--- end

--== take each
-- Takes for several asks. Their sizes are another argument, one byte each. The asks are independent, and each sees
-- those before it. Written states are recorded only if asks share a state.
--- olds
-- `w` before the sizes means that asks may share a state: `written` then has each state as written by earlier asks. `a`
-- means that they do not.
local match, sizes, first = string.match, ARGV[2], 1
local written, failed = string.byte(sizes) == 119 and {}, false
-- Decides one ask. Returns the table of states, or an error.
local function take(first, last)
  --- ask
  return olds
end
--- take.each
for i = 2, #sizes do
  local last = first + string.byte(sizes, i) - 1
  local reply = each(first, last)
  if reply.err then olds[first], failed = reply, true end
  first = last + 1
end
-- Only a table can hold an error as an element.
if failed then
  olds[#keys + 1], olds[#keys + 2] = time[1], time[2]
  return olds
end
--- end

--== olds
-- The time, as in every script. Values that most calls do not need are not fetched here.
local call, unpacked, find, keys, arguments = redis.call, struct.unpack, string.find, KEYS, ARGV
local packs, n, time, grace = arguments[1], #arguments, nil, 5
-- Tests give the time as the last two arguments. Keys then live an hour longer, because the server's clock expires
-- them.
if n > 2 then
  time, grace = {arguments[n - 1], arguments[n]}, 3600005
else
  time = call('TIME')
end
local now = time[1] * 1000000 + time[2] - 1704067200000000
if now < 0 then now = 0 end
-- A table of the size that most calls need does not have to grow.
local olds, hides, texts = call('MGET', unpack(keys)), nil, {0, 0, 0, 0, 0}

--== ask
-- `texts` holds the prices to add. The other debts are judged, and written whole. A price that DECRBY would reject is
-- not used, so the error is found before any limit of the request is charged.
local all, judged, lates, from = true, nil, nil, 54 * first - 52
for i = first, last do
  local old, text, late = olds[i], nil, nil
  if written and written[keys[i]] then
    old = written[keys[i]]
    olds[i] = old
  end
  -- Only a state with a minus can be added to. A zero after it would be rejected by DECRBY.
  if old and find(old, '^%-[1-9]%d*$') then
    --- grow
  end
  texts[i] = text
  if late then
    lates = lates or {}
    lates[i] = late
  end
  if not text then
    -- MGET returns nil for a key that is not a string. EXISTS checks all missing keys once.
    if not old and hides == nil then
      local missing = {}
      for other = i, #keys do
        if not olds[other] then missing[#missing + 1] = keys[other] end
      end
      hides = call('EXISTS', unpack(missing)) > 0
    end
    if not old and hides and call('EXISTS', keys[i]) == 1 then
      return redis.error_reply('WRONGTYPE a debt is not a string; delete the key, or use another prefix')
    end
    olds[i] = old or ''
    --- judge
    judged = judged or {}
    judged[i], all = {clear, ticks, block, cut, was}, all and passes
  end
  from = from + 54
end
-- The general case: some debts are written whole, or expire later.
if judged or lates or written then
  local format = string.format
  for i = first, last do
    local key, text = keys[i], texts[i]
    if text then
      if all then
        local late = lates and lates[i]
        --- add
        if written then written[key] = format('%.0f', olds[i] - text) end
      end
    elseif all or judged[i][4] then
      local clear, ticks, block, _, was = unpack(judged[i])
      --- write
      if written then written[key] = text end
    end
  end
else
  for i = first, last do call('DECRBY', keys[i], texts[i]) end
end

--== end
return time[1] .. ' ' .. time[2] .. ' ' .. table.concat(olds, ' ')

--== look
-- Writes a debt, for sections that are not included as text. The sections `look`, `spend` and `refuse` are the
-- interface of the general script; see `take.lua`.
local function write_debt(key, clear, ticks, was, block)
  --- write
end
-- An invalid debt counts as live here; the error is reported when it is read. A debt that ends now is not live.
local function debt_is_live(old)
  local whole, part = match(old or '0', '^%-?(%d+):?(%d*)$')
  if not whole then return true end
  return whole * 1 > now or whole * 1 == now and part ~= '' and part * 1 > 0
end
-- Returns the debt after the price, and whether the ask passes. With an initial state, `tell` is nil: the key has no
-- state of its own.
look.t = function(key, packs, begin)
  local old, from = call('GET', key), 2
  local tell = old
  if begin and not debt_is_live(old) then
    if not begin.known then return stale end
    old, tell = begin.state, nil
  end
  --- judge
  if not tell then was = nil end
  return {passes = passes, tell = tell, clear = clear, ticks = ticks, cut = cut, was = was, block = block}
end
-- Writes the debt after the price.
spend.t = function(key, _, view) write_debt(key, view.clear, view.ticks, view.was, view.block) end
-- Writes a debt that was cut, and nothing otherwise. Leaky buckets (`l`) use the same functions: the difference is in
-- the numbers of the pack.
refuse.t = function(key, _, view)
  if view.cut then spend.t(key, _, view) end
end
look.l, spend.l, refuse.l = look.t, spend.t, refuse.t

--== adjust
-- A charge is capped at the depth, a refund at the debt. Returns 1 if all of it was applied, 0 if a part, and 3 if the
-- initial state has to be known first.
local key, packs, from = KEYS[1], ARGV[1], 2
local old, begin = call('GET', key), begin_of(ARGV[3])
local begun = begin and not debt_is_live(old)
if begun then
  if not begin.known then return 3 end
  old = begin.state
end
--- read
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

--== give back
-- The last take is given back as far as time has not repaid it. For an earlier take, at most the time since the take
-- can have been repaid, so the rest is given back. A delayed request has a reserved time that another request would
-- then share, so nothing is given back while any request may be delayed. Returns 1 if all of the price came back, 0 if
-- less.
local key = KEYS[1]
local old = call('GET', key)
local paid, paid_ticks, clear, ticks, quiet, quiet_ticks = unpacked('<dHdHdH', ARGV[1], 2)
local whole, part = match(old or '', '^%-?(%d+):?(%d*)$')
if not whole then return 0 end
local stands, stands_ticks = whole * 1, part == '' and 0 or part * 1
local owed, owed_ticks = minus(stands, stands_ticks, now, 0)
local back, back_ticks
if stands == clear and stands_ticks == ticks then
  back, back_ticks = least(paid, paid_ticks, owed, owed_ticks)
elseif now >= taken_at and not less(quiet, quiet_ticks, owed, owed_ticks) then
  back, back_ticks = minus(paid, paid_ticks, now - taken_at, 0)
  back, back_ticks = least(back, back_ticks, owed, owed_ticks)
else
  return 0
end
if back + back_ticks > 0 then write_debt(key, minus(stands, stands_ticks, back, back_ticks)) end
return back == paid and back_ticks == paid_ticks and 1 or 0

--== refund
-- Other processes use the same state, so the order of its debts is unknown. At most the time since the take can have
-- been repaid. A delayed request has a reserved time that another request would then share, so nothing is refunded
-- while any request may be delayed. Returns 1 if the whole price came back, 0 if less.
local key = KEYS[1]
local old = call('GET', key)
local price, price_ticks, paid, paid_ticks, quiet, quiet_ticks = unpacked('<dHdHdH', ARGV[1], 2)
local whole, part = match(old or '', '^%-?(%d+):?(%d*)$')
if not whole or now < taken_at then return 0 end
local stands, stands_ticks = whole * 1, part == '' and 0 or part * 1
local owed, owed_ticks = minus(stands, stands_ticks, now, 0)
if less(quiet, quiet_ticks, owed, owed_ticks) then return 0 end
local back, back_ticks = minus(paid, paid_ticks, now - taken_at, 0)
back, back_ticks = least(back, back_ticks, owed, owed_ticks)
back, back_ticks = least(back, back_ticks, price, price_ticks)
if back + back_ticks > 0 then write_debt(key, minus(stands, stands_ticks, back, back_ticks)) end
return back == price and back_ticks == price_ticks and 1 or 0
