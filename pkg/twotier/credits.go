package twotier

// Credits returns how many units are held, of all keys, that may still be spent. It
// looks at every key, so it is for the occasional look only.
func (l *Limiter) Credits() int64 {
	now := l.clock.now()
	var sum int64
	l.eachKey(func(k *Key) {
		k.mu.Lock()
		defer k.mu.Unlock()
		a := k.peekAccount()
		sum += a.Front.Held(now) + a.Back.Held(now)
	})
	return sum
}
