// Package capture leads the connections that come to a pod for the app's ports to
// the sidecar's listeners instead.
//
// It is the work of a container that runs once, before the sidecar, as root with
// the capability NET_ADMIN and no other, and leaves one table, inet weir, in the
// nftables of the pod's network:
//
//	table inet weir {
//	    chain prerouting {
//	        type nat hook prerouting priority dstnat
//	        iifname != "lo" fib daddr type local tcp dport 8080 redirect to :15006
//	    }
//	}
//
// There is no other chain. Packets that the pod sends do not pass prerouting, except those to
// itself, which come in by the loopback device and are left alone. (Its addresses are settled
// as it goes out, so Linux would not translate them here anyway; the rule says it for readers.)
// So init containers and the app keep their network whether the sidecar runs or not, and the
// sidecar reaches the app at the pod's own address. Packets that a pod forwards for others are
// not addressed to it and are left alone as well.
//
// The rules are sent to the kernel by netlink: the image needs no program nft or
// iptables, and the rules of others (kube-proxy's, a CNI plugin's, a mesh's) are in
// tables of their own.
package capture
