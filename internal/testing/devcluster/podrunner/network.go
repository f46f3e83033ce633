package podrunner

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
)

// A Network hands out loopback addresses, one for each pod. Networks of several
// processes on one machine do not overlap.
type Network struct {
	second byte
	claim  net.Listener // held so that no other process takes the same network

	mu   sync.Mutex
	used map[netip.Addr]bool
	last int
}

// claimPort is the kubelet's, on the network's first address.
const claimPort = 10250

// NewNetwork claims one of the networks 127.64.0.0/16 to 127.127.0.0/16 until
// it is closed.
func NewNetwork() (*Network, error) {
	var errs error
	for second := byte(64); second < 128; second++ {
		claim, err := net.Listen("tcp", fmt.Sprintf("127.%d.0.1:%d", second, claimPort)) //nolint:noctx // returns at once
		if err == nil {
			return &Network{second: second, claim: claim, used: map[netip.Addr]bool{}}, nil
		}
		errs = err
	}
	return nil, errors.Join(errors.New("no loopback network is free; pods need one beyond 127.0.0.1, as Linux has it"), errs)
}

// Close gives the network up.
func (n *Network) Close() error { return n.claim.Close() }

// NodeAddress returns the network's first address.
func (n *Network) NodeAddress() netip.Addr { return netip.AddrFrom4([4]byte{127, n.second, 0, 1}) }

// take returns an address that was not used for as long as possible.
func (n *Network) take() netip.Addr {
	n.mu.Lock()
	defer n.mu.Unlock()
	const perNode = 1 << 15
	for {
		n.last = n.last%perNode + 1
		a := netip.AddrFrom4([4]byte{127, n.second, byte(1 + n.last/254), byte(1 + n.last%254)})
		if !n.used[a] {
			n.used[a] = true
			return a
		}
	}
}

func (n *Network) giveBack(a netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.used, a)
}
