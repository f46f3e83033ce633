package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

var errUnable = errors.New("a network of its own needs root and /dev/net/tun")

// A network is one without a way out: what would take it arrives here.
type network struct {
	exit *os.File
	read sync.WaitGroup
	left map[string]bool // destinations of packets
}

// open moves the calling goroutine, and the processes it starts, to a new network.
func open() (*network, error) {
	if os.Geteuid() != 0 {
		return nil, errUnable
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		return nil, errUnable
	}
	runtime.LockOSThread() // for good: the thread ends with the program
	if err := unix.Unshare(unix.CLONE_NEWNET); errors.Is(err, unix.EPERM) {
		return nil, errUnable
	} else if err != nil {
		return nil, fmt.Errorf("unshare: %w", err)
	}
	exit, err := openExit()
	if err != nil {
		return nil, err
	}
	n := &network{exit: exit, left: map[string]bool{}}
	n.read.Go(n.collect)
	return n, nil
}

// close returns where packets tried to go.
func (n *network) close() string {
	if n == nil {
		return ""
	}
	// Packets of the last moment are on their way to the reader.
	_ = n.exit.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	n.read.Wait()
	n.drain()
	_ = n.exit.Close()
	return strings.Join(slices.Sorted(maps.Keys(n.left)), ", ")
}

func (n *network) collect() {
	packet := make([]byte, 64<<10)
	for {
		size, err := n.exit.Read(packet)
		if err != nil {
			return // the deadline
		}
		n.note(packet[:size])
	}
}

// drain takes what has arrived. A read whose deadline has passed looks no more, and the
// reader of a busy machine may not have looked before.
func (n *network) drain() {
	_ = n.exit.SetReadDeadline(time.Time{})
	raw, err := n.exit.SyscallConn()
	if err != nil {
		return
	}
	packet := make([]byte, 64<<10)
	_ = raw.Read(func(fd uintptr) bool {
		for {
			size, err := unix.Read(int(fd), packet)
			if err != nil || size == 0 {
				return true // there is nothing
			}
			n.note(packet[:size])
		}
	})
}

func (n *network) note(packet []byte) {
	if to := destination(packet); to != "" {
		n.left[to] = true
	}
}

// destination names where a packet is addressed to, empty for those that never leave a
// link: what the kernel itself sends to find neighbours and routers.
func destination(p []byte) string {
	var to netip.Addr
	var protocol byte
	var rest []byte
	switch {
	case len(p) >= 20 && p[0]>>4 == 4:
		to, _ = netip.AddrFromSlice(p[16:20])
		protocol, rest = p[9], p[min(len(p), int(p[0]&15)*4):]
	case len(p) >= 40 && p[0]>>4 == 6:
		to, _ = netip.AddrFromSlice(p[24:40])
		protocol, rest = p[6], p[40:]
	default:
		return fmt.Sprintf("a packet of %d bytes", len(p))
	}
	if to.IsLinkLocalMulticast() {
		return ""
	}
	if named := map[byte]string{unix.IPPROTO_TCP: "tcp", unix.IPPROTO_UDP: "udp"}[protocol]; named != "" && len(rest) >= 4 {
		return named + " " + netip.AddrPortFrom(to, binary.BigEndian.Uint16(rest[2:])).String()
	}
	return fmt.Sprintf("protocol %d to %s", protocol, to)
}

// openExit raises the loopback interface, and makes the one that the default routes
// lead to.
func openExit() (*os.File, error) {
	v4, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	defer unix.Close(v4)
	const name = "exit"
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	exit := request(name)
	exit.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	address := request(name)
	if err := address.SetInet4Addr([]byte{192, 0, 2, 1}); err != nil { // of the documentation's
		return nil, err
	}
	err = errors.Join(unix.IoctlIfreq(fd, unix.TUNSETIFF, exit), unix.IoctlIfreq(v4, unix.SIOCSIFADDR, address), up(v4, "lo"), up(v4, name))
	if err == nil {
		err = errors.Join(defaultRoute(v4, name), defaultRoute6(v4, name))
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("set up a network: %w", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

func request(name string) *unix.Ifreq {
	r, err := unix.NewIfreq(name)
	if err != nil {
		panic(err) // the name is too long
	}
	return r
}

func up(fd int, name string) error {
	r := request(name)
	r.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r)
}

// rtentry is the kernel's struct of that name.
type rtentry struct {
	_                         uintptr
	destination, gateway, net unix.RawSockaddrInet4
	flags                     uint16
	_                         int16
	_, _                      uintptr
	metric                    int16
	device                    *byte
	mtu, window               uintptr
	roundTrip                 uint16
}

func defaultRoute(fd int, device string) error {
	name, err := unix.BytePtrFromString(device)
	if err != nil {
		return err
	}
	inet := unix.RawSockaddrInet4{Family: unix.AF_INET}
	r := rtentry{destination: inet, gateway: inet, net: inet, flags: unix.RTF_UP, device: name}
	return ioctl(fd, unsafe.Pointer(&r))
}

// in6Rtmsg is the kernel's struct in6_rtmsg.
type in6Rtmsg struct {
	destination, source, gateway    [16]byte
	kind                            uint32
	destinationLength, sourceLength uint16
	metric                          uint32
	_                               uintptr
	flags                           uint32
	index                           int32
}

// defaultRoute6 does nothing where the kernel has no IPv6.
func defaultRoute6(v4 int, device string) error {
	v6, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil // nothing can leave by it
	}
	defer unix.Close(v6)
	index := request(device)
	if err := unix.IoctlIfreq(v4, unix.SIOCGIFINDEX, index); err != nil {
		return err
	}
	r := in6Rtmsg{metric: 1, flags: unix.RTF_UP, index: int32(index.Uint32())}
	return ioctl(v6, unsafe.Pointer(&r))
}

func ioctl(fd int, argument unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCADDRT, uintptr(argument)); errno != 0 {
		return fmt.Errorf("add a route: %w", errno)
	}
	return nil
}
