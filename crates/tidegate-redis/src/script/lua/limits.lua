-- The table of limits of a namespace.
--
-- A namespace is usually a rule. Its table records the numbers that the rule has had, so that counts can be carried
-- over after a change, and so that a reset by key finds all states. A table has at most 1,024 limits.

--== table
-- The limits that a namespace has had, in a hash. A field is the name and the numbers of a limit. Its value holds three
-- numbers. The first is the order in which the limits of a rule came into force; zero for other limits. The second is
-- the time at which it came into force. The third is the time until which a state under it can matter. The field '~'
-- holds the time until which states can matter under limits that did not fit.
local key = KEYS[1]
-- Returns an entry; nil if the value is missing or malformed.
local function read_entry(value)
  local order, since, till = match(value or '', '^(%d+):(%d+):(%d+)$')
  if order then return {order = order * 1, since = since * 1, till = till * 1, live = till * 1 > now} end
end
-- Processes that do not know of each other restore a lost table, so the order alone is not sufficient. A limit that
-- came into force later is newer; at the same instant, the one with the higher order. Clocks of several primaries may
-- differ, and then the order of changes is that of their clocks.
local function newer(one, other)
  return one.since > other.since or one.since == other.since and one.order > other.order
end
-- Returns the limits of a rule, newest first.
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
-- Deletes entries that cannot matter any more, and returns the others by field. A rule's newest limits stay if they
-- followed one that matters: its counts are carried over through them. At most the newest five limits of a rule stay
-- for that reason.
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
-- Adds a limit that is not listed. A full table counts it in the field '~' instead.
local function enter(field, entry, known, count)
  if count < 1024 then
    write(field, entry)
  else
    local others = known['~'] or {till = 0}
    write('~', {order = 0, since = 0, till = math.max(entry.till, others.till)})
  end
end

--== note
-- Lists a limit for a time from now. A longer entry is not shortened. An entry without its position among the limits of
-- its rule gets it back.
local field, ahead, order, since = match(ARGV[1], '^n(.+) (%d+) (%d+) (%d+)$')
local entry, own = read_entry(call('HGET', key, field)), {order = order * 1, since = since * 1, till = now + ahead}
if entry then
  if newer(own, entry) then entry.order, entry.since = own.order, own.since end
  entry.till = math.max(entry.till, own.till)
  write(field, entry)
else
  enter(field, own, sweep())
end
return {time[1], time[2]}

--== announce
-- Puts the limit of a rule in force, unless it is. Returns its order and its time of coming into force. Then a flag:
-- whether states matter under limits of its algorithm older than those returned. Then the previous limits, newest
-- first.
local field, ahead = match(ARGV[1], '^n(.+) (%d+) %d+ %d+$')
local known, count = sweep()
local rules = rules_of(known)
local newest, entry = rules[1] or {order = 0, since = 0}, known[field]
local till = math.max(now + ahead, entry and entry.till or 0)
if newest.name == field then
  write(field, {order = newest.order, since = newest.since, till = till})
else
  newest = {order = newest.order + 1, since = math.max(now, newest.since), till = till}
  if entry then write(field, newest) else enter(field, newest, known, count) end
end
local reply = {time[1], time[2], newest.order, newest.since, 0}
for i = 1, #rules do
  if rules[i].name ~= field then
    if #reply < 13 then
      reply[#reply + 1], reply[#reply + 2] = rules[i].name, rules[i].since
    elseif rules[i].live and string.byte(rules[i].name) == string.byte(field) then
      reply[5] = 1
    end
  end
end
return reply

--== list
-- Returns whether there are other limits, and the fields of all limits under which a key may have a state.
local all, reply = call('HGETALL', key), {0}
for i = 1, #all, 2 do
  if all[i] ~= '~' then
    reply[#reply + 1] = all[i]
  elseif (read_entry(all[i + 1]) or {}).live then
    reply[1] = 1
  end
end
return reply
