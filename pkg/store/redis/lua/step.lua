-- The units left, the state kept, and the answer.

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
    local ends = larger(ends_of(s), math.ceil(now / 1000))
    -- The counter is written first: a server whose memory is full refuses the first
    -- write of a script, and with it the whole decision.
    call('SET', KEYS[1], text, 'PXAT', ends + BACKSTOP)
    noted = now >= memory.latest + LATEST_STEP
    if kind_now == WINDOWS then
      for _, m in ipairs(meters) do noted = noted or start(m, m.index) > memory.latest end
    end
    if noted then memory.latest = now end
    made = not old
    if made then call('ZADD', sub(KEYS[2], 1, -7) .. 'ends', ends, KEYS[1]) end
  end
end
return answer(noted, reason, granted, left, limit, resets, expires_in, retry, delay)
