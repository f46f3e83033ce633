package handover

import "sync"

// A Parting orders the goodbye to a holder behind the answers that are under way, since none reaches
// it afterwards. Units that such an answer grants would be lost to the window. The zero value is
// that of a holder that is served.
type Parting struct {
	mu      sync.Mutex
	closed  bool   // no answer begins any more
	answers int    // that are under way
	goodbye func() // is called when none is; nil unless one is waited for
}

// Answer begins an answer, and reports false when it is too late for one. Answered ends it.
func (p *Parting) Answer() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.answers++
	}
	return !p.closed
}

// Answered ends an answer.
func (p *Parting) Answered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answers--; p.answers == 0 {
		p.say()
	}
}

// Begin has no answer begin any more, and calls goodbye when none is under way.
func (p *Parting) Begin(goodbye func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed, p.goodbye = true, goodbye
	if p.answers == 0 {
		p.say()
	}
}

// Begun reports whether no answer begins any more.
func (p *Parting) Begun() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// Insist calls goodbye now, whatever is under way, unless it was called.
func (p *Parting) Insist() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.say()
}

// say calls goodbye, once. The lock is held.
func (p *Parting) say() {
	if p.goodbye != nil {
		p.goodbye()
		p.goodbye = nil
	}
}
