package pools_test

// surround lets happen what no holder does.
func (f *fleet) surround(w world, emit emitter) {
	emit(event{"a tick passes", nobody, silent}, f.tickOn(w))
	if w.gained < f.gains {
		v := w
		v.gained++
		emit(event{"the coordinator's clock gains a tick", nobody, silent}, v)
	}
	if w.forgot < f.forgets {
		v := w
		v.forgot++
		v.before = v.pool
		v.pool = after(f.rules.begin(1+v.forgot, f.now(&v), f.policies[0]), f.now(&v))
		emit(event{"the coordinator forgets", nobody, silent}, v)
	}
	if w.moved < f.moves {
		v := w
		v.moved++
		state, err := f.rules.moved(v.pool.memory, f.now(&v))
		if v.broken = err; err == nil {
			v.pool = after(state, f.now(&v))
		}
		emit(event{"another leader takes over", nobody, silent}, v)
	}
	for n := range f.holders {
		if w.holders[n].policy+1 < len(f.policies) {
			v := w
			v.holders[n].policy++
			emit(event{"hears of edit", n, int64(v.holders[n].policy)}, v)
		}
	}
}

// tickOn lets time pass. Requests that run when a share has ended are over some time later.
func (f *fleet) tickOn(w world) world {
	w.ticks++
	for n := range f.holders {
		h := &w.holders[n]
		if w.ticks >= h.over {
			h.inflight, h.of = 0, byKey{}
		}
		if f.peaks && h.beat != nil && w.ticks >= h.beat.sent+f.ttl() {
			h.beat = nil
		}
	}
	return w
}
