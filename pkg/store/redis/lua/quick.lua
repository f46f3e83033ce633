-- Step in a straight line for what is asked most: a take by one rate, of a counter
-- that has it already or is new, on an instance that remembers. It follows the files that
-- step.lua ends, to which it leaves what is rare.

local QUICK_HEAD, QUICK_STATE, QUICK_REPLY = '>BBlBllllB', '>lllllll', '>BBBBBlllllllllll'
local QUICK_BYTES, REPLY_BYTES, LOG_AT = 44, 93, 105

-- The head and the command that were read last, and what they say. Most commands of a batch are
-- the same, and to read one costs as much as to decide it.
local head, command, fits = nil, nil, false
local first, retention, min, want, buckets, max_delay, lifetime, p_since, recalled, doubtful
local algorithm, limit, window, burst, offset, number, windowed

-- The last result of the command on a new counter, by what its partition remembered: the text, when it
-- ends, and the reply. New counters of a batch mostly become the same.
local made_text, made_ends, made_reply, made_known, made_begun

-- read_command reads a head and a command, and reports whether quick may decide them.
local function read_command(a_head, a_command)
  if a_head == head and a_command == command then return fits end
  head, command, fits, made_text = a_head, a_command, false, nil
  if #head ~= QUICK_BYTES then return false end
  local op, default, reached, monthly, _
  op, first, _, retention, min, want, _, buckets, max_delay, lifetime, p_since, default, reached, recalled, doubtful = unpack(COMMAND, command)
  _, algorithm, _, _, limit, window, burst, offset, monthly = unpack(QUICK_HEAD, head)
  number = (now + offset - (now + offset) % window) / window
  windowed = algorithm == FIXED_WINDOW
  fits = op == TAKE and default == 0 and now >= reached and monthly == 0
  return fits
end

-- The guard that was read last, and what it says.
local guard, remembers, line, since, latest = nil, false, nil, 0, 0
local own_line -- of a guard of this instance

-- read_guard reads a guard, nil for one that is not there, and reports whether it is this instance's.
local function read_guard(a_guard)
  if a_guard == guard then return remembers end
  guard, remembers = a_guard, false
  if not guard or string.byte(guard) ~= GUARD_VERSION then return false end
  if own_line and find(guard, own_line, 2, true) == 2 then
    line, since, latest = own_line, unpack('>ll', guard, GUARD_BYTES - 15)
    remembers = now >= latest
    return remembers
  end
  local _
  _, line, since, latest = unpack(GUARD, guard)
  remembers = now >= latest and find(info, line, 1, true) ~= nil
  if remembers then own_line = line end
  return remembers
end

-- The end that a counter was given last, in milliseconds, and until when the server keeps it, as a
-- text: to make one of a number is a good part of what a write costs.
local kept_end, kept_until

local function keep_text(ends)
  if ends ~= kept_end then kept_end, kept_until = ends, string.format('%.0f', ends + BACKSTOP) end
  return kept_until
end

-- note returns the guard that says that a counter was written now, nil when the one that was read last
-- says so well enough.
local function note()
  if now < latest + LATEST_STEP and not (windowed and number * window - offset > latest) then return end
  local tail = sub(guard, GUARD_BYTES + 1)
  if replicated and #tail >= TAIL_BYTES and string.byte(tail, TAIL_BYTES) % FOLLOWED < COPIED then
    tail = sub(tail, 1, TAIL_BYTES - 1) .. string.char(string.byte(tail, TAIL_BYTES) + COPIED) .. sub(tail, TAIL_BYTES + 1)
  end
  return pack(GUARD, GUARD_VERSION, line, since, now) .. tail
end

-- make writes a new counter, and returns what quick does.
local function make(key)
  if not call('SET', key, made_text, 'PXAT', keep_text(made_ends), 'NX') then
    return -- it has a value of another type
  end
  return made_reply, made_text, note(), made_ends
end

-- quick decides a command by the texts of the counter and of the guard, nil for one that
-- is not there, and writes the counter. It returns the reply, the text of the counter, that
-- of the guard if it is another, and when a counter that it made ends; or nothing when it
-- did nothing.
local function quick(key, a_head, a_command, old, a_guard)
  if not read_command(a_head, a_command) or not read_guard(a_guard) or old and sub(old, 1, QUICK_BYTES) ~= head then return end
  local expires, began, pulse, asked, before, index, used = 0, 0, 0, 0, 0, 0, 0
  if old then expires, began, pulse, asked, before, index, used = unpack(QUICK_STATE, old, QUICK_BYTES + 1) end
  if now < began or windowed and number < index then return end

  local starts, known, begun = number * window - offset, since, since
  if retention ~= 0 or since ~= recalled or doubtful > 0 or #guard > GUARD_BYTES + TAIL_BYTES or #command > COMMAND_BYTES and not (windowed and starts >= since) then
    local learned
    known, begun, learned = remembered(command, line, since, parts_of(guard, since))
    if learned then return end
  end
  if known < p_since then known = p_since end
  if not old and made_text and known == made_known and begun == made_begun then return make(key) end
  local reason, granted, left, most, resets, expires_in, retry, delay = GRANTED, 0, 0, limit, 0, lifetime, 0, 0
  local moved, keep_until = not old, 0
  local from, till, newest = nil, 0, '' -- of a log: the bytes that stay, and an entry after them

  if windowed then
    if number ~= index then
      moved, index, used = true, number, 0
    end
    if number ~= pulse then
      before = number == pulse + 1 and asked or 0
      pulse, asked = number, 0
    end
    asked = asked + first
    resets = starts + window - now
    expires_in, keep_until = resets, starts + 2 * window
    local forgotten = starts < known
    if not forgotten and used < limit then left = limit - used end
    if min > limit then
      reason = TOO_LARGE
    elseif left < min then
      reason, retry = forgotten and AMNESIA or EXHAUSTED, resets
    else
      local others = before > asked and before - asked or 0
      granted = (left + -left % (others + 1)) / (others + 1)
      if granted > want then granted = want end
      if granted < min then granted = min end
      used, left = used + granted, left - granted
    end

  elseif algorithm <= SLIDING_LOG then
    local part = 1
    if algorithm == SLIDING_WINDOW then
      part = (window + -window % buckets) / buckets
    elseif limit > MAX_LOG then
      part = (window + -window % MAX_LOG) / MAX_LOG
    end
    from, till = LOG_AT, old and #old or LOG_AT - 1
    local last, last_count
    while from < till do
      local at, count, next = unpack(ENTRY, old, from)
      if now < at + window then break end
      from, used = next, used - count
    end
    if from < till then
      last, last_count = unpack(ENTRY, old, till - ENTRY_BYTES + 1)
      resets = last + window - now
    end
    if index < now then index = now end
    if used < limit then left = limit - used end
    local blind = known > 0 and known + lifetime + -(known + lifetime) % part + window - now or 0
    if blind > 0 then left = 0 end
    if min > limit then
      reason = TOO_LARGE
    elseif left < min then
      reason = blind > 0 and AMNESIA or EXHAUSTED
      local excess, at_byte = used + min - limit, from
      while excess > 0 and at_byte < till do
        local at, count, next = unpack(ENTRY, old, at_byte)
        excess, retry, at_byte = excess - count, at + window - now, next
      end
      if retry < blind then retry = blind end
    else
      granted = want < left and want or left
      left, used = left - granted, used + granted
      local at = now + lifetime
      at = at + -at % part
      if last and (at <= last or till - from + 1 >= MAX_LOG * ENTRY_BYTES) then
        if at < last then at = last end
        till, newest = till - ENTRY_BYTES, pack(ENTRY, at, last_count + granted)
      else
        newest = pack(ENTRY, at, granted)
      end
      resets = at + window - now
      if expires < now + lifetime then expires = now + lifetime end
    end
    keep_until = (now + resets > index and now + resets or index) + window
    if resets < blind then resets = blind end

  else
    local cost, drain = window, limit
    do
      local a, b = limit, window
      while b ~= 0 do a, b = b, a % b end
      cost, drain = window / a, limit / a
    end
    local full = (burst == 0 and limit or burst) * cost
    if algorithm == LEAKY_BUCKET then full = max_delay * drain + cost end
    local lowest = lifetime * drain
    if not old then index = now end
    if now > index then
      used, index = used - (now - index) * drain, now
    end
    if used < lowest then used = lowest end
    if known > 0 then
      local fill = full - (now > known and (now - known) * drain or 0)
      if fill < 0 then fill = 0 end
      if fill >= used then
        used = fill
        if index < known then index = known end
      end
    end
    local ahead = index - now
    most = (full - lowest - (full - lowest) % cost) / cost
    if used < full then left = (full - used - (full - used) % cost) / cost end
    if min > most then
      reason = TOO_LARGE
    elseif left < min then
      local over = used - full + min * cost
      reason, retry = EXHAUSTED, ahead + (over + -over % drain) / drain
    else
      granted = want < left and want or left
      left, used = left - granted, used + granted * cost
      if algorithm == LEAKY_BUCKET and used > cost then
        delay = (used - cost + -(used - cost) % drain) / drain
      end
      if expires < now + lifetime + delay then expires = now + lifetime + delay end
    end
    if used > lowest then resets = ahead + (used - lowest + -(used - lowest) % drain) / drain end
    keep_until = index + (used + -used % drain) / drain + window
  end

  local text = head .. pack(QUICK_STATE, expires, began, pulse, asked, before, index, used)
  local noted, ends
  if windowed and not moved then
    if text ~= old then call('SET', key, text, 'KEEPTTL') end
  elseif windowed or moved or granted > 0 then
    if from then text = text .. pack('>I', till - from + 1 + #newest) .. sub(old or '', from, till) .. newest end
    if keep_until < expires then keep_until = expires end
    ends = (keep_until + -keep_until % 1000) / 1000
    if old then
      call('SET', key, text, 'PXAT', keep_text(ends))
      noted = note()
    end
  else
    text = old
  end
  local reply = pack(QUICK_REPLY, old and 0 or 2, reason, algorithm, 1, 0, granted, left, most, resets, expires_in, retry, delay, now, begun,
    number, windowed and used or 0)
  if old then return reply, text, noted end
  made_text, made_ends, made_reply, made_known, made_begun = text, ends, reply, known, begun
  return make(key)
end
