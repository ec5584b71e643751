-- The limits that a namespace has had, in a hash. A field is the name and the numbers of a limit. Its value says in which
-- order the limits of a rule came into force, and zero of others; since when it is in force; and until when a state under
-- it can matter. The field '~' says until when states under limits can matter for which there was no room.
local key = KEYS[1]
local function read_entry(value)
  local order, since, till = match(value or '', '^(%d+):(%d+):(%d+)$')
  if order then return {order = order * 1, since = since * 1, till = till * 1, live = till * 1 > now} end
end
-- A table that was lost is put together again by processes that do not know of each other, so an order alone is not enough:
-- what came into force later is newer, and of two that came at one instant the one with the higher order.
local function newer(one, other)
  return one.since > other.since or one.since == other.since and one.order > other.order
end
-- The limits of a rule, newest first.
local function rules_of(known)
  local rules = {}
  for field, entry in pairs(known) do
    if entry.order > 0 then
      entry.name = field
      rules[#rules + 1] = entry
    end
  end
  table.sort(rules, newer)
  return rules
end
-- Drops what cannot matter any more. What is left, by field. Of a rule's newest limits those stay that came after one that
-- matters: its counts are carried through them.
local function sweep()
  local all, known, count = call('HGETALL', key), {}, 0
  for i = 1, #all, 2 do known[all[i]] = read_entry(all[i + 1]) or {order = 0} end
  local rules, matters = rules_of(known), false
  for i = #rules, 1, -1 do
    rules[i].stays = matters and i < 6
    matters = matters or rules[i].live
  end
  for field, entry in pairs(known) do
    if not entry.live and not entry.stays then
      call('HDEL', key, field)
      known[field] = nil
    elseif field ~= '~' then
      count = count + 1
    end
  end
  return known, count
end
-- The table lives as long as its longest entry.
local function write(field, entry)
  local till = math.min(entry.till, 1152921504606846)
  call('HSET', key, field, format('%.0f:%.0f:%.0f', entry.order, entry.since, till))
  local left = (till - now) / 1000 + grace
  if call('PTTL', key) < left then call('PEXPIRE', key, format('%.0f', left)) end
end
-- Lists a limit that is not listed.
local function enter(field, entry, known, count)
  if count < 1024 then
    write(field, entry)
  else
    local others = known['~'] or {till = 0}
    write('~', {order = 0, since = 0, till = math.max(entry.till, others.till)})
  end
end
