-- The known state of the counter.

local algorithm, generation, rates = unpack_head(ARGV[1])
local kind = machine(algorithm)
local memory = recall(guard)
local known, begun, learned, followed = remembered(ARGV[2], memory.line, memory.since, memory.origin, memory.lost,
  memory.flags, memory.volatile, memory.durable)
if learned and string.byte(ARGV[2], RETENTION_AT) == LOSSLESS then
  memory.durable = learned
elseif learned then
  memory.volatile = learned
end
if learned and followed and memory.flags < FOLLOWED then memory.flags = memory.flags + FOLLOWED end

local s = {algorithm = algorithm, generation = generation, meters = rates, expires = 0, began = 0, pulse = 0, asked = 0, before = 0}
local old_head = ARGV[1]
local made = false -- a counter that was not there
local tenants -- what each was granted, nil when nobody was

if old then
  if string.byte(old) ~= VERSION then
    error('the counter has layout version ' .. tostring((string.byte(old))) .. ', this script knows ' .. VERSION)
  end
  local at = #ARGV[1] + 1
  if not own then
    s.algorithm, s.generation, s.meters, at = unpack_head(old)
    old_head = sub(old, 1, at - 1)
  end
  tenants = unpack_counts(s, old, at)
end

-- answer packs the reply and, when it changed, writes the guard.
local function answer(moved, reason, granted, remaining, limit, resets, expires_in, retry, delay)
  if memory.began or moved or learned then save_guard(KEYS[2], memory, guard) end
  local parts = {pack_result((memory.began and 1 or 0) + (made and 2 or 0), reason, s.algorithm, #s.meters, not own, granted, remaining, limit, resets, expires_in, retry, delay, now, begun)}
  for _, m in ipairs(s.meters) do
    if not own then parts[#parts + 1] = pack_rate(m) end
    if s.algorithm == FIXED_WINDOW then
      parts[#parts + 1] = pack(METER, m.index, m.used)
    else
      parts[#parts + 1] = pack(METER, index(m, now), 0)
    end
  end
  return table.concat(parts)
end

local newest = larger(memory.latest, s.began, reached)
if old and s.algorithm == FIXED_WINDOW then
  for _, m in ipairs(s.meters) do newest = larger(newest, start(m, m.index)) end
end
if generation < s.generation then
  return answer(false, STALE_GENERATION, 0, 0, 0, 0, 0, 0, 0)
end
if now < newest then
  if not old then s.algorithm, s.meters = FIXED_WINDOW, {} end
  return answer(false, CLOCK_BEHIND, 0, 0, 0, 0, 0, newest - now, 0)
end
known = larger(known, p_since) -- Memory.Since as Step has it
