-- The key lives until the second is over in which the debt is repaid, so a debt that grows within it keeps its end.
local low = clear % 1000000
local high = (clear - low) / 1000000
local text = ticks == 0 and format('%d%06d', high, low) or format('%d%06d:%d', high, low, ticks)
if high == was then
  call('SET', key, text, 'KEEPTTL')
else
  call('PSETEX', key, format('%d', (clear - low - now) / 1000 + 1000 + grace), text)
end
