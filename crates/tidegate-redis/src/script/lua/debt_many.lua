-- All packs are in one argument. Most calls are about few limits: a table of that size need not grow.
local olds, packs = call('MGET', unpack(KEYS)), ARGV[1]
local ready, all, cuts, missing = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, true, nil, nil
n = #KEYS
for i = 1, n do
  local old, from = olds[i], 31 * i - 29
  if not old then
    missing = missing or {}
    missing[#missing + 1] = KEYS[i]
  end
  --- debt_judge
  ready[3 * i - 2], ready[3 * i - 1], ready[3 * i], all = clear, ticks, was, all and passes
  if cut then
    cuts = cuts or {}
    cuts[i] = true
  end
end
-- MGET sees nothing where something else than a string is.
if missing and call('EXISTS', unpack(missing)) > 0 then
  return redis.error_reply('WRONGTYPE a debt is not a string; delete the key, or use another prefix')
end
if all or cuts then
  for i = 1, n do
    if all or cuts[i] then
      local key, clear, ticks, was = KEYS[i], ready[3 * i - 2], ready[3 * i - 1], ready[3 * i]
      --- debt_write
    end
  end
end
olds[n + 1], olds[n + 2] = time[1], time[2]
return olds
