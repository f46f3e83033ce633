-- sliding.go. A log is a string of entries; used is their sum.

local function spent_by(r, expires)
  local part = 1
  if algorithm == SLIDING_WINDOW then
    part = ceil_div(r.window, buckets)
  elseif r.limit > MAX_LOG then
    part = ceil_div(r.window, MAX_LOG)
  end
  return ceil_div(expires, part) * part
end

-- forget drops the entries that no longer count, as alive does.
local function forget(m)
  local from = 1
  while from <= #m.log do
    local at, count, next = unpack(ENTRY, m.log, from)
    if now < at + m.window then break end
    from, m.used = next, m.used - count
  end
  if from > 1 then m.log = sub(m.log, from) end
end

local function log_ends(m)
  if m.log == '' then return 0 end
  local at = unpack(ENTRY, m.log, #m.log - ENTRY_BYTES + 1)
  return at + m.window
end

local function note(m, at, amount)
  amount = smaller(amount, MAX_EXACT - m.used)
  if amount == 0 then return end
  local size = #m.log
  m.used = m.used + amount
  if size > 0 then
    local last, count = unpack(ENTRY, m.log, size - ENTRY_BYTES + 1)
    if at <= last or size >= MAX_LOG * ENTRY_BYTES then
      m.log = sub(m.log, 1, size - ENTRY_BYTES) .. pack(ENTRY, larger(at, last), count + amount)
      return
    end
  end
  m.log = m.log .. pack(ENTRY, at, amount)
end
