package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/weir-dev/weir/internal/testing/devcluster/link"
)

// A network holds the regions. Each is in a network namespace of its own, from which only
// its link leads to the coordinator, or all are on the loopback address where that is not
// allowed. The links make the distance, which works on every kernel.
type network struct {
	apart bool
}

// openNetwork makes a namespace for each region if it may, and says why not otherwise.
func openNetwork(ctx context.Context) (n *network, why error) {
	n = &network{}
	if os.Geteuid() != 0 {
		return n, errors.New("not root")
	}
	for i := range regions {
		if err := join(ctx, i); err != nil {
			n.close()
			return &network{}, err
		}
	}
	n.apart = true
	return n, nil
}

// join connects a new namespace to this one by a pair of devices. The addresses are
// those set aside for measurements (RFC 2544).
func join(ctx context.Context, i int) error {
	space, outside, inside := namespace(i), fmt.Sprintf("weir-eval-%do", i), fmt.Sprintf("weir-eval-%di", i)
	for _, line := range []string{
		"netns add " + space,
		"link add " + outside + " type veth peer name " + inside + " netns " + space,
		"addr add " + address(i, 1) + "/30 dev " + outside,
		"link set " + outside + " up",
		"-n " + space + " addr add " + address(i, 2) + "/30 dev " + inside,
		"-n " + space + " link set " + inside + " up",
	} {
		if out, err := exec.CommandContext(ctx, "ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", line, err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}

func namespace(i int) string { return fmt.Sprintf("weir-eval-%d-%d", os.Getpid(), i) }

// address returns the address of one end of a region's devices.
func address(i, end int) string { return "198.18." + strconv.Itoa(i) + "." + strconv.Itoa(end) }

// close removes the namespaces, and the devices with them.
func (n *network) close() {
	for i := range regions {
		_ = exec.Command("ip", "netns", "del", namespace(i)).Run() //nolint:noctx // also when the evaluation was given up
	}
}

// host is the address at which a region reaches its link.
func (n *network) host(i int) string {
	if n.apart {
		return address(i, 1)
	}
	return "127.0.0.1"
}

// link opens the way of a region to a server.
func (n *network) link(i int, server string) (*link.Link, error) {
	return link.OpenAt(n.host(i), server)
}

// play runs a region's process where it belongs.
func (n *network) play(ctx context.Context, i int, o order) (report, error) {
	if n.apart {
		return play(ctx, []string{"ip", "netns", "exec", namespace(i)}, o)
	}
	return play(ctx, nil, o)
}
