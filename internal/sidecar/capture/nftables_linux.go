package capture

import (
	"errors"
	"fmt"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

const (
	tableName = "weir"
	chainName = "prerouting"
)

// Apply makes the table again, with these redirects and no other, in the network
// that the calling thread is in. The kernel takes it as a whole or not at all.
func Apply(redirects []Redirect) error {
	conn, err := nftables.New()
	if err != nil {
		return explain(err)
	}
	table := &nftables.Table{Family: nftables.TableFamilyINet, Name: tableName}
	// A table can be deleted only when it is there, so it is made first.
	conn.AddTable(table)
	conn.DelTable(table)
	conn.AddTable(table)
	chain := conn.AddChain(&nftables.Chain{
		Table: table, Name: chainName, Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityNATDest,
	})
	for _, r := range redirects {
		conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: r.rule()})
	}
	return explain(conn.Flush())
}

// rule is: iifname != "lo" fib daddr type local tcp dport App redirect to :Listen.
func (r Redirect) rule() []expr.Any {
	const register = 1
	loopback := make([]byte, unix.IFNAMSIZ)
	copy(loopback, "lo")
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: register},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: register, Data: loopback},
		&expr.Fib{Register: register, FlagDADDR: true, ResultADDRTYPE: true},
		&expr.Cmp{Op: expr.CmpOpEq, Register: register, Data: binaryutil.NativeEndian.PutUint32(unix.RTN_LOCAL)},
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: register},
		&expr.Cmp{Op: expr.CmpOpEq, Register: register, Data: []byte{unix.IPPROTO_TCP}},
		&expr.Payload{DestRegister: register, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Cmp{Op: expr.CmpOpEq, Register: register, Data: binaryutil.BigEndian.PutUint16(r.App)},
		&expr.Immediate{Register: register, Data: binaryutil.BigEndian.PutUint16(r.Listen)},
		&expr.Redir{RegisterProtoMin: register},
	}
}

// explain says what the kernel's refusal means for the operator of the pod.
func explain(err error) error {
	const cure = "or let the sidecar take over the port's name instead (annotate the pod config.weir.dev/capture: port)"
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("the pod's network may not be changed: %w: run the container as root with the capability NET_ADMIN, %s", err, cure)
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EPROTONOSUPPORT), errors.Is(err, unix.EAFNOSUPPORT):
		return fmt.Errorf("the node's kernel cannot redirect: %w: it needs Linux 5.2 with nftables, nft_redir and nft_fib_inet, %s", err, cure)
	}
	return fmt.Errorf("redirecting: %w: %s", err, cure)
}
