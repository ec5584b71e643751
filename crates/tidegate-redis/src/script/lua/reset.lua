local found = 0
for i = 1, #KEYS, 2 do
  if mark(KEYS[i], KEYS[i + 1]) then found = found + call('DEL', KEYS[i]) end
end
return found
