package admin

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/fleet"
	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/pkg/policy"
)

// ConfigPath is where a Config is served.
const ConfigPath = "/debug/config"

// A Source is what a Config shows.
type Source interface {
	Set() (set *policy.Set, version string)
	Refused() policy.Refusals // of the newest snapshot
	Limits() []enforce.LimitState
	Pools() []pools.State
	Fleet() *fleet.State // nil when no controller is configured
}

// A Config shows what is in force, rules and the values of their overrides included. It
// is for users with access to the pod, so it belongs on the loopback address, where
// kubectl port-forward finds it.
type Config struct {
	Mode   enforce.Mode
	Source Source
}

// body is what a Config answers.
type body struct {
	Mode     enforce.Mode    `json:"mode"`
	Version  string          `json:"version,omitempty"`
	Refused  []string        `json:"refused,omitempty"` // of the newest snapshot, and why
	Fleet    *fleet.State    `json:"fleet,omitempty"`
	Pools    []poolState     `json:"pools,omitempty"`
	Limits   []limitState    `json:"limits"`
	Snapshot policy.Snapshot `json:"snapshot"`
}

type limitState struct {
	Namespace       string     `json:"namespace"`
	Policy          string     `json:"policy"`
	Limit           string     `json:"limit"`
	Algorithm       string     `json:"algorithm"`
	Consistency     string     `json:"consistency"`
	Shadow          bool       `json:"shadow"`
	Budget          string     `json:"budget,omitempty"`
	ActiveKeys      int        `json:"activeKeys"`
	KeysFull        string     `json:"keysFull,omitempty"` // by which bound values share counters
	SharedKeys      int        `json:"sharedKeys"`         // how many they share
	StoreRoundTrips int64      `json:"storeRoundTrips"`
	StoreAwaySince  *time.Time `json:"storeAwaySince,omitempty"`
	StoreError      string     `json:"storeError,omitempty"`
}

// ServeHTTP answers with JSON.
func (c *Config) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	set, version := c.Source.Set()
	b := body{
		Mode: c.Mode, Version: version, Fleet: c.Source.Fleet(), Snapshot: set.Snapshot,
		Limits: []limitState{},
	}
	for _, r := range c.Source.Refused() {
		b.Refused = append(b.Refused, r.Error())
	}
	for _, p := range c.Source.Pools() {
		b.Pools = append(b.Pools, poolStateOf(&p))
	}
	for _, l := range c.Source.Limits() {
		b.Limits = append(b.Limits, limitStateOf(&l))
	}
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		say(w, http.StatusInternalServerError, "the configuration cannot be shown\n")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(text, '\n')) // an error means that the client is gone
}

func limitStateOf(l *enforce.LimitState) limitState {
	state := limitState{
		Namespace: l.Namespace, Policy: l.Policy, Limit: l.Limit,
		Algorithm: string(l.Algorithm), Consistency: string(l.Consistency), Shadow: l.Mode == policy.Shadow,
		Budget:     l.Budget,
		KeysFull:   l.Stats.Full.String(),
		SharedKeys: l.Stats.SharedKeys,
		ActiveKeys: l.Stats.ActiveKeys, StoreRoundTrips: l.Stats.RoundTrips,
	}
	if l.Stats.CutOff != nil {
		state.StoreAwaySince, state.StoreError = &l.Stats.CutOffSince, l.Stats.CutOff.Error()
	}
	return state
}
