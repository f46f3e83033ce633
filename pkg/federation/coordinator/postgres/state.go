package postgres

import (
	"encoding/json"
	"fmt"

	"github.com/weir-dev/weir/pkg/federation/ledger"
)

// A remembered is ledger.State as weir.observe writes it: names are bytes.
type remembered struct {
	ledger.State
	Accounts []struct {
		ledger.Account
		Member, Holder []byte
	}
	Vouches []struct {
		ledger.Vouch
		Member []byte
	}
	Standings []struct {
		ledger.Standing
		Member []byte
	}
	Closed []struct {
		ledger.Closed
		Usage []struct {
			ledger.MemberUsage
			Member []byte
		}
	}
}

// decodeState reads the reply of weir.observe.
func decodeState(reply []byte) (ledger.State, error) {
	var r remembered
	if err := json.Unmarshal(reply, &r); err != nil {
		return ledger.State{}, fmt.Errorf("weir.observe: %w", err)
	}
	for _, a := range r.Accounts {
		a.Account.Member, a.Account.Holder = string(a.Member), string(a.Holder)
		r.State.Accounts = append(r.State.Accounts, a.Account)
	}
	for _, v := range r.Vouches {
		v.Vouch.Member = string(v.Member)
		r.State.Vouches = append(r.State.Vouches, v.Vouch)
	}
	for _, t := range r.Standings {
		t.Standing.Member = string(t.Member)
		r.State.Standings = append(r.State.Standings, t.Standing)
	}
	for _, w := range r.Closed {
		for _, u := range w.Usage {
			u.MemberUsage.Member = string(u.Member)
			w.Closed.Usage = append(w.Closed.Usage, u.MemberUsage)
		}
		r.State.Closed = append(r.State.Closed, w.Closed)
	}
	return r.State, nil
}
