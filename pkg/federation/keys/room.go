package keys

// A Room is how full the book of a window is. The zero Room is that of a window in which
// nothing was granted.
type Room struct {
	Counters int64 // that keys have, by themselves or together
	Full     bool  // a key had to share one, for want of room
}

// A Crowd is what a coordinator said last of the rooms of windows. Each begins empty, so that of
// the window before counts as well. The zero Crowd is of none. It is a value.
type Crowd struct {
	index        int64 // of the window that was heard of last
	room, before Room  // of that window, and of the one before
}

// Hear takes note of the room of a window.
func (c Crowd) Hear(index int64, r Room) Crowd {
	switch {
	case index < c.index:
		return c
	case index == c.index+1:
		c.before, c.room = c.room, Room{}
	case index > c.index:
		c.before, c.room = Room{}, Room{}
	}
	c.index = index
	c.room = c.room.or(r)
	return c
}

// In returns how full it is while the window with the index is open: the fuller of that one
// and the one before.
func (c Crowd) In(index int64) Room {
	switch index {
	case c.index:
		return c.room.or(c.before)
	case c.index + 1:
		return c.room
	default:
		return Room{}
	}
}

func (r Room) or(o Room) Room {
	return Room{Counters: max(r.Counters, o.Counters), Full: r.Full || o.Full}
}
