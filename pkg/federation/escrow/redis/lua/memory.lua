-- State, and how it is kept.

local s -- State, since when it is remembered, and by which instance

-- begin is the State of an escrow never used. The instance before may have served up
-- to this very instant.
local function begin()
  s = {
    line = string.match(info, 'master_replid:%x+'), since = now, holder = '',
    seq = 0, floor = 0, next = 0, latest = now, index = 0, term = 0, ends = 0,
    slice = 0, before = 0, granted = 0, taken = 0, asked = 0,
  }
end

-- recall reads the memory. One begins for a command that finds none, or that of
-- another instance, which may lack what was taken last.
local function recall()
  local text = call('GET', KEYS[1])
  if not text then return begin() end
  if string.byte(text) ~= VERSION then
    error('the escrow has layout version ' .. tostring((string.byte(text))) .. ', this script knows ' .. VERSION)
  end
  local _
  s = {holder = sub(text, MEMORY_BYTES + 1)}
  _, s.line, s.since, s.seq, s.floor, s.next, s.latest, s.index, s.term, s.ends, s.slice, s.before, s.granted, s.taken, s.asked =
    unpack(MEMORY, text)
  if not string.find(info, s.line, 1, true) then begin() end
end

-- remember writes the memory, which Redis keeps until State.Keep.
local function remember()
  local text = pack(MEMORY, VERSION, s.line, s.since, s.seq, s.floor, s.next, s.latest, s.index, s.term, s.ends,
    s.slice, s.before, s.granted, s.taken, s.asked) .. s.holder
  call('SET', KEYS[1], text, 'PXAT', floor((larger(s.latest, s.ends) + MAX_WINDOW) / 1000))
end
