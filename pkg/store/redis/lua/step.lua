-- step.go on one counter of this server.

local function reset(s, now)
  for _, m in ipairs(s.meters) do m.used, m.log = 0, m.log and '' end
  local res = {algorithm = s.algorithm, reason = GRANTED}
  describe(s, now, 0, res)
  return res
end

local function served(s, memory)
  local newest = memory.latest
  if s.algorithm == FIXED_WINDOW then
    for _, w in ipairs(s.meters) do newest = math.max(newest, start_of(w)) end
  end
  return newest
end

local function step(s, now, memory)
  local since = math.max(memory.since, p.since)
  adopt(s, now, since)
  if c.op == RETURN then return give_back(s, now, since) end
  if c.op == RESET then return reset(s, now) end
  return take(s, now, since)
end

-- keep_until is the instant up to which State.KeepFor wants the state kept.
local function keep_until(s, now)
  local last = s.expires
  for _, m in ipairs(s.meters) do
    local kind, ends = machine(s.algorithm), 0
    if kind == WINDOWS then ends = end_of(m) end
    if kind == SLIDING then ends = now + log_ends(m, now) end
    if kind == BUCKETS then ends = now + drained(m, now) end
    last = math.max(last, ends + m.window)
  end
  return last
end

-- LATEST_STEP is how far the newest instant may lag behind decisions that open no
-- window. It is the shortest time a counter is kept beyond what it has to.
local LATEST_STEP = 100000

-- same_layout reports whether two states differ by nothing but their counts.
local function same_layout(head, meters, old_head, old_meters)
  if head ~= old_head then return false end
  for i, m in ipairs(meters) do
    if m.index ~= old_meters[i].index then return false end
  end
  return true
end

-- commit writes what the decision changed. The counter comes first: a server that
-- is out of memory refuses the first write, and with it the whole decision.
local function commit(s, now, old, res, memory)
  local head = pack_head(s)
  local packed = pack_state(s, head)
  if s.algorithm == FIXED_WINDOW then
    if old.text == packed then return end
    if same_layout(head, s.meters, old.head, old.meters) then return save_again(KEYS[1], packed) end
    memory.latest, memory.moved = now, true
  else
    if head == old.head and c.op ~= RESET and res.granted == 0 then return end
    if now >= memory.latest + LATEST_STEP then memory.latest, memory.moved = now, true end
  end
  save(KEYS[1], packed, keep_until(s, now))
end

local now = read_clock()
parse()
local values = redis.call('MGET', KEYS[1], KEYS[2])
local memory = recall(read(KEYS[2], values[2]), now)
local old = {text = read(KEYS[1], values[1])}
local s = unpack_state(old.text)
old.meters, old.head = s.meters, old.text and pack_head(s)

local res
local newest_served = served(s, memory)
if p.generation < s.generation then
  res = {reason = STALE_GENERATION, algorithm = s.algorithm}
elseif now < newest_served then
  res = {reason = CLOCK_BEHIND, algorithm = s.algorithm, retry_after = newest_served - now}
else
  res = step(s, now, memory)
  if c.op ~= PEEK then commit(s, now, old, res, memory) end
end
if memory.began or memory.moved then save_guard(KEYS[2], memory) end
return reply(memory.began, res, windows_of(s, now), now, pack_head(s) == ARGV[1])
