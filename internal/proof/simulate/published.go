package simulate

import (
	"slices"

	"github.com/weir-dev/weir/pkg/limiter"
)

// An allOrNothing holder leases a fixed batch.
type allOrNothing struct {
	node      *node
	batch     int64
	carryOver bool

	credits int64
	window  int64   // that the credits are of
	waiting []int64 // costs of the requests that wait for the call
	calling bool
	crashed bool
}

func (h *allOrNothing) request(cost int64) {
	if !h.spend(cost) {
		h.waiting = append(h.waiting, cost)
		h.ask()
	}
}

func (h *allOrNothing) configure(limiter.Params) {}
func (h *allOrNothing) crash()                   { h.crashed = true }

func (h *allOrNothing) spend(cost int64) bool {
	if !h.carryOver && h.window != h.node.window() {
		h.credits = 0
	}
	if h.credits < cost {
		return false
	}
	h.credits -= cost
	h.node.admit(cost, nil)
	return true
}

// ask leases for the first request that waits, unless a call is under way.
func (h *allOrNothing) ask() {
	if h.calling || len(h.waiting) == 0 {
		return
	}
	h.calling = true
	amount := max(h.batch, h.waiting[0])
	take := limiter.Command{Op: limiter.Take, Min: amount, Want: amount}
	h.node.world.send(message{node: h.node, params: h.node.params, command: take}, h.heard)
}

// heard serves the requests that wait from a grant. A refusal is for all of them.
func (h *allOrNothing) heard(r answer, ok bool) {
	if h.crashed {
		return
	}
	h.calling = false
	if r.Granted > 0 {
		if window := r.Windows.Open[0].Index; window != h.window {
			if !h.carryOver {
				h.credits = 0
			}
			h.window = window
		}
		h.credits += r.Granted
	}
	h.waiting = slices.DeleteFunc(h.waiting, h.spend)
	if !ok || r.Granted == 0 {
		for _, cost := range h.waiting {
			h.node.refuse(cost)
		}
		h.waiting = nil
	}
	h.ask()
}

// A static holder has a part of its own of each window.
type static struct {
	node   *node
	window int64
	used   int64
}

func (h *static) request(cost int64) {
	if w := h.node.window(); w != h.window {
		h.window, h.used = w, 0
	}
	if h.used+cost > h.node.params.Rates[0].Limit/int64(h.node.world.Holders) {
		h.node.refuse(cost)
		return
	}
	h.used += cost
	h.node.admit(cost, nil)
}

func (h *static) configure(limiter.Params) {}
func (h *static) crash()                   {}
