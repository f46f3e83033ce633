-- What is left, what is kept, and the answer.

local left, limit, resets = read(1)
local expires_in = lifetime
if kind_now == WINDOWS then
  expires_in = MAX_WINDOW
  for i = 1, #meters do
    expires_in = smaller(expires_in, start(meters[i], meters[i].index + 1) - now)
  end
end

local parts = {own and ARGV[1] or pack_head(s), pack(TIMES, s.expires, s.began, s.pulse, s.asked, s.before)}
for i = 1, #meters do parts[i + 2] = pack(METER, meters[i].index, meters[i].used) end
if kind_now == SLIDING then
  for _, m in ipairs(meters) do parts[#parts + 1] = pack('>I', #m.log) end
  for _, m in ipairs(meters) do parts[#parts + 1] = m.log end
elseif tenants then
  parts[#parts + 1] = cmsgpack.pack(tenants)
end
local text = table.concat(parts)

-- A refusal changes nothing of meters without windows that does not come with time.
local changed = text ~= old
if kind_now ~= WINDOWS then changed = moved or granted > 0 or op == RESET end

local noted = false
if changed and op ~= PEEK then
  if kind_now == WINDOWS and not moved then
    call('SET', KEYS[1], text, 'KEEPTTL')
  else
    local keep_until = larger(now, s.expires)
    for _, m in ipairs(meters) do
      local counts
      if kind_now == WINDOWS then
        counts = start(m, m.index + 1)
      elseif kind_now == SLIDING then
        counts = larger(m.index, log_ends(m))
      else
        local _, drain = pace(m)
        counts = m.index + ceil_div(m.used, drain)
      end
      keep_until = larger(keep_until, counts + m.window)
    end
    -- The counter is written first: a server whose memory is full refuses the first
    -- write of a script, and with it the whole decision.
    call('SET', KEYS[1], text, 'PXAT', math.ceil(keep_until / 1000))
    noted = kind_now == WINDOWS or now >= latest + LATEST_STEP
    if noted then latest = now end
  end
end
return answer(noted, reason, granted, left, limit, resets, expires_in, retry, delay)
