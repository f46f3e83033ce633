package ledger

import (
	"cmp"
	"slices"
)

// account returns where the account of a holder is or belongs.
func (s *State) account(member, holder string) (int, bool) {
	return slices.BinarySearchFunc(s.Accounts, Account{Member: member, Holder: holder}, func(a, b Account) int {
		return cmp.Or(cmp.Compare(a.Member, b.Member), cmp.Compare(a.Holder, b.Holder))
	})
}

// stale reports whether a Lease or Release of the holder with no smaller number was
// served in this window.
func (s *State) stale(c *Command) bool {
	i, ok := s.account(c.Member, c.Holder)
	return ok && c.Seq <= s.Accounts[i].Seq
}

// book sets what the holder of c was granted altogether. The list is copied.
func (s *State) book(c *Command, granted int64) {
	i, ok := s.account(c.Member, c.Holder)
	accounts := make([]Account, len(s.Accounts), len(s.Accounts)+1)
	copy(accounts, s.Accounts)
	if !ok {
		accounts = slices.Insert(accounts, i, Account{Member: c.Member, Holder: c.Holder})
	}
	accounts[i].Seq, accounts[i].Granted = c.Seq, granted
	s.Accounts = accounts
}

// of returns the accounts of a member.
func (s *State) of(member string) []Account {
	i, _ := s.account(member, "") // no holder has an empty name
	n := i
	for n < len(s.Accounts) && s.Accounts[n].Member == member {
		n++
	}
	return s.Accounts[i:n]
}

func (s *State) grantedTo(member string) int64 {
	var sum int64
	for _, a := range s.of(member) {
		sum += a.Granted
	}
	return sum
}

// granted returns what this memory granted of the open window.
func (s *State) granted() int64 {
	var sum int64
	for _, a := range s.Accounts {
		sum += a.Granted
	}
	return sum
}
