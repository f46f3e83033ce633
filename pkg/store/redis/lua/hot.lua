-- Step in a straight line for what is asked most: a take by one rate, of a counter
-- that has it already or is new, on an instance that remembers. It follows the
-- files below; what is rare it leaves to them.

local HOT_HEAD, HOT_STATE, HOT_REPLY = '>BBlBllllB', '>lllllll', '>BBBBBlllllllllll'
local HOT_BYTES, LOG_AT = 44, 105

-- A counter is own when it has the generation, the algorithm and the rates of the
-- parameters, or is new.
local own = not old or sub(old, 1, #ARGV[1]) == ARGV[1]
if own and op == TAKE and default == 0 and #ARGV[1] == HOT_BYTES and guard and string.byte(guard) == GUARD_VERSION then
  local _, line, since, latest = unpack(GUARD, guard)
  local _, algorithm, _, _, limit, window, burst, offset, monthly = unpack(HOT_HEAD, ARGV[1])
  local expires, began, pulse, asked, before, index, used = 0, 0, 0, 0, 0, 0, 0
  if old then expires, began, pulse, asked, before, index, used = unpack(HOT_STATE, old, HOT_BYTES + 1) end
  local number = (now + offset - (now + offset) % window) / window
  local windowed = algorithm == FIXED_WINDOW

  if find(info, line, 1, true) and now >= latest and now >= reached and now >= began and monthly == 0 and not (windowed and number < index) then
    local starts, known, begun = number * window - offset, since, since
    if retention ~= 0 or since ~= recalled or doubtful > 0 or #ARGV[2] > COMMAND_BYTES and not (windowed and starts >= since) then
      local origin, lost = '', since
      if #guard > GUARD_BYTES then origin, lost = unpack(TAIL, guard, GUARD_BYTES + 1) end
      known, begun = remembered(line, since, origin, lost)
    end
    if known < p_since then known = p_since end
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

    local text = ARGV[1] .. pack(HOT_STATE, expires, began, pulse, asked, before, index, used)
    if windowed and not moved then
      if text ~= old then call('SET', KEYS[1], text, 'KEEPTTL') end
    elseif windowed or moved or granted > 0 then
      if from then text = text .. pack('>I', till - from + 1 + #newest) .. sub(old or '', from, till) .. newest end
      if keep_until < expires then keep_until = expires end
      local ends = (keep_until + -keep_until % 1000) / 1000
      call('SET', KEYS[1], text, 'PXAT', ends + BACKSTOP)
      if windowed or now >= latest + LATEST_STEP then
        local tail = sub(guard, GUARD_BYTES + 1)
        if replicated and #tail == TAIL_BYTES and string.byte(tail, -1) < COPIED then
          tail = sub(tail, 1, -2) .. string.char(string.byte(tail, -1) + COPIED)
        end
        call('SET', KEYS[2], pack(GUARD, GUARD_VERSION, line, since, now) .. tail)
      end
      if not old then call('ZADD', sub(KEYS[2], 1, -7) .. 'ends', ends, KEYS[1]) end
    end
    return pack(HOT_REPLY, old and 0 or 2, reason, algorithm, 1, 0, granted, left, most, resets, expires_in, retry, delay, now, begun,
      number, windowed and used or 0)
  end
end
