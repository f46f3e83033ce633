-- sliding.go. A log is a string of entries, and Used their sum.

local MAX_LOG = 1024

local function spent_by(r, now)
  local at = now + p.lifetime
  if p.algorithm == SLIDING_WINDOW then
    local part = ceil_div(r.window, p.buckets)
    at = ceil_div(at, part) * part
  end
  return at
end

-- forget drops the entries that no longer count, as Meter.alive does.
local function forget(m, now)
  local from = 1
  while from < #m.log do
    local at, count = struct.unpack(ENTRY, m.log, from)
    if now < at + m.window then break end
    from, m.used = from + ENTRY_BYTES, m.used - count
  end
  m.log = string.sub(m.log, from)
end

local function newest(m)
  if m.log == '' then return nil end
  local at, count = struct.unpack(ENTRY, m.log, #m.log - ENTRY_BYTES + 1)
  return at, count
end

local function log_ends(m, now)
  local at = newest(m)
  return at and math.max(0, at + m.window - now) or 0
end

local function sliding_wait(m, now, amount)
  local excess = m.used + amount - m.limit
  if excess <= 0 then return 0 end
  for from = 1, #m.log, ENTRY_BYTES do
    local at, count = struct.unpack(ENTRY, m.log, from)
    excess = excess - count
    if excess <= 0 then return math.max(0, at + m.window - now) end
  end
  return 0
end

local function note(m, at, amount)
  local last, count = newest(m)
  m.used = m.used + amount
  if not last or at > last and #m.log < MAX_LOG * ENTRY_BYTES then
    m.log = m.log .. struct.pack(ENTRY, at, amount)
  else
    m.log = string.sub(m.log, 1, -ENTRY_BYTES - 1) .. struct.pack(ENTRY, math.max(at, last), count + amount)
  end
end

local function erase(m, at, amount)
  for from = 1, #m.log, ENTRY_BYTES do
    local instant, count = struct.unpack(ENTRY, m.log, from)
    if instant == at and count >= amount then
      local rest = count > amount and struct.pack(ENTRY, at, count - amount) or ''
      m.log = string.sub(m.log, 1, from - 1) .. rest .. string.sub(m.log, from + ENTRY_BYTES)
      m.used = m.used - amount
      return true
    end
  end
  return false
end
