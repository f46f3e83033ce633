package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/internal/backend"
	"github.com/weir-dev/weir/internal/controlplane/jwks"
	"github.com/weir-dev/weir/pkg/store"
)

// addresses decide which addresses of stores, hubs and issuers of tokens the controller connects to. Everybody
// who may write policies or budgets names them, and the controller stands where these
// writers do not. The zero value knows of no API server.
type addresses struct {
	allowed, denied []netip.Prefix

	host    string // of the API server
	port    uint16
	resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	now     func() time.Time

	mu    sync.Mutex // guards all below
	known []netip.Addr
	at    time.Time
}

// resolvedFor is how long the addresses of the API server stand.
const resolvedFor = time.Minute

// newAddresses returns those that the options allow, beside the API server of config.
func newAddresses(o *options, config *rest.Config) (*addresses, error) {
	a := &addresses{now: time.Now, resolve: func(ctx context.Context, host string) ([]netip.Addr, error) {
		return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	}}
	var err, invalid error
	a.allowed, err = prefixes("allow-store-cidrs", o.allowStores)
	a.denied, invalid = prefixes("deny-store-cidrs", o.denyStores)
	if err := errors.Join(err, invalid); err != nil {
		return nil, err
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("address of the API server: %w", err)
	}
	a.host, a.port = server.Hostname(), portOf(server)
	return a, nil
}

func portOf(u *url.URL) uint16 {
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	switch {
	case err == nil && port > 0:
		return uint16(port)
	case u.Scheme == "http":
		return 80
	}
	return 443
}

// prefixes reads the CIDRs of a flag. The error names each value that is not one, and the cure.
func prefixes(flag string, cidrs []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	var errs []error
	for _, cidr := range cidrs {
		p, err := netip.ParsePrefix(cidr)
		switch {
		case err != nil, p.Addr().Is4In6():
			errs = append(errs, fmt.Errorf("--%s has %q: write CIDRs such as 10.20.0.0/16, 192.0.2.7/32 or fd00:20::/64", flag, cidr))
		case p != p.Masked():
			errs = append(errs, fmt.Errorf("--%s has %q, which is an address with the length of a network: write %s", flag, cidr, p.Masked()))
		default:
			out = append(out, p)
		}
	}
	return out, errors.Join(errs...)
}

// metadata are addresses at which clouds give credentials to machines, beside the link-local
// ones.
var metadata = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"),   // Amazon
	netip.MustParseAddr("fd20:ce::254"),    // Google
	netip.MustParseAddr("168.63.129.16"),   // Azure
	netip.MustParseAddr("100.100.100.200"), // Alibaba
	netip.MustParseAddr("192.0.0.192"),     // Oracle
}

var (
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8")
	nat64       = netip.MustParsePrefix("64:ff9b::/96")
	broadcast   = netip.MustParseAddr("255.255.255.255")
)

// control implements store.Control. It is asked about the very address that is dialled, so
// it does not matter which names lead there, nor what they led to before.
func (a *addresses) control(ctx context.Context, network, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || !strings.HasPrefix(network, "tcp") {
		return refused(address, "a socket of the controller's machine")
	}
	ip := plainAddr(to.Addr())
	servers, err := a.servers(ctx)
	if err != nil {
		return &store.Failure{Why: "it cannot be found out now whether its address is that of the API server", Cause: err}
	}
	server := slices.Contains(servers, ip)
	switch {
	case server && to.Port() == a.port:
		return &store.Failure{Why: "its address is that of the API server: name another server", Cause: errors.New(address)}
	case contains(a.allowed, ip):
		return nil
	case server:
		return refused(address, "on the machine of the API server")
	case contains(a.denied, ip):
		return refused(address, "denied by --deny-store-cidrs")
	case !ordinary(ip):
		return refused(address, "loopback, link-local or of no single machine")
	}
	return nil
}

// plain is control for what is read without encryption. Anyone in between could replace it,
// so an administrator has to have allowed the very address.
func (a *addresses) plain(ctx context.Context, network, address string, c syscall.RawConn) error {
	if err := a.control(ctx, network, address, c); err != nil {
		return err
	}
	to, err := netip.ParseAddrPort(address)
	if err != nil || !contains(a.allowed, plainAddr(to.Addr())) {
		return &store.Failure{
			Why: "without encryption the controller connects only to addresses that an administrator has allowed by --allow-store-cidrs " +
				"of the controller (stores.allowCIDRs of the chart): write https",
			Cause: fmt.Errorf("%s is not allowed", address),
		}
	}
	return nil
}

// stores returns what opens stores.
func (a *addresses) stores() backend.Opener {
	return backend.Opener{Control: a.control, Plain: a.plain}
}

// keySets returns what reads the key sets of issuers of tokens.
func (a *addresses) keySets() *jwks.Fetcher { return jwks.NewFetcher(a.control, a.plain) }

// refused returns the error of an address that the controller does not connect to. The
// address may have been named by a server, so it is in the cause.
func refused(address, kind string) error {
	return &store.Failure{
		Why: "the controller may not connect to its address: name a server elsewhere, or let an administrator allow the address " +
			"by --allow-store-cidrs of the controller (stores.allowCIDRs of the chart)",
		Cause: fmt.Errorf("%s is %s", address, kind),
	}
}

// plainAddr returns an address as what is reached by it.
func plainAddr(ip netip.Addr) netip.Addr {
	ip = ip.WithZone("").Unmap()
	if nat64.Contains(ip) {
		bytes := ip.As16()
		ip = netip.AddrFrom4([4]byte(bytes[12:]))
	}
	return ip
}

// ordinary reports whether an address is of a machine that is not this one, and is not
// special to it.
func ordinary(ip netip.Addr) bool {
	return !ip.IsLoopback() && !ip.IsLinkLocalUnicast() && !ip.IsUnspecified() && !ip.IsMulticast() &&
		!thisNetwork.Contains(ip) && ip != broadcast && !slices.Contains(metadata, ip)
}

func contains(all []netip.Prefix, ip netip.Addr) bool {
	return slices.ContainsFunc(all, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// servers returns the addresses of the API server, as far as its name leads to them. When
// that is not answered, those that were known stand.
func (a *addresses) servers(ctx context.Context) ([]netip.Addr, error) {
	if a.host == "" {
		return nil, nil
	}
	if ip, err := netip.ParseAddr(a.host); err == nil {
		return []netip.Addr{plainAddr(ip)}, nil
	}
	a.mu.Lock()
	known, at := a.known, a.at
	a.mu.Unlock()
	if known != nil && a.now().Sub(at) < resolvedFor {
		return known, nil
	}
	found, err := a.resolve(ctx, a.host)
	switch {
	case err != nil && known == nil:
		return nil, fmt.Errorf("resolve %s: %w", a.host, err)
	case err != nil:
		return known, nil
	}
	for i := range found {
		found[i] = plainAddr(found[i])
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known, a.at = found, a.now()
	return found, nil
}
