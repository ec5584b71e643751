-- From `old`, `packs` from the byte `from` on, and `now`: when everything is repaid, no deeper than the limit can hold.
-- `was` is the second in which it would have been repaid anyway.
local price, price_ticks, bar, bar_ticks, depth, depth_ticks = struct.unpack('<dHdHdH', packs, from)
local clear, ticks, cut, was = now, 0, false, nil
if old then
  clear = tonumber(old)
  if not clear then
    local whole, part = string.match(old, '^(%d+):(%d+)$')
    if not whole or part * 1 > 15999 then
      return redis.error_reply('TIDEGATE a debt is not a time; delete the key, or use another prefix')
    end
    clear, ticks = whole * 1, part * 1
  end
  was = (clear - clear % 1000000) / 1000000
  if clear <= now or clear > now + depth or clear % 1 ~= 0 then
    if clear > 1152921504606846 or not string.find(old, '^%d+:?%d*$') then
      return redis.error_reply('TIDEGATE a debt is not a time; delete the key, or use another prefix')
    end
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
