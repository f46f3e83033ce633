package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
)

// hints are what to try next.
func (d *policyShow) hints() string {
	dir := d.dir
	if relative, err := filepath.Rel(d.root, d.dir); err == nil {
		dir = relative
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "Try it, in another terminal in this directory:\n"+
		"  export KUBECONFIG=$PWD/%[1]s/kubeconfig PATH=$PWD/%[1]s/bin:$PWD/bin:$PATH\n"+
		"  see what is refused kubectl weir why -n shop --last 5\n"+
		"  ask about a request kubectl weir explain -n shop $(kubectl -n shop get pods -o name | head -1) --request 'GET /'\n"+
		"  change the limit    kubectl -n shop edit rlp checkout\n"+
		"  add pods            kubectl -n shop scale deploy checkout --replicas=8\n"+
		"  bring all back      kubectl replace -f %[1]s/shop.yaml     (apply it when the policy is deleted)\n"+
		"  kill a sidecar      kill -9 $(cat %[1]s/pods/shop_checkout-*/weir-sidecar.pid | head -1)\n"+
		"  kill the controller kill -9 %[2]d\n"+
		"  send your own load  curl the proxies in %[1]s/endpoints.json\n", dir, d.cluster.Controller.PID())
	fmt.Fprintf(&b, "  change its ways     kubectl -n shop patch rlp checkout --type merge --patch-file %s/edits/FILE\n"+
		"                      with %s\n", dir, strings.Join(d.stores.edits(), ", "))
	if redis := d.stores.redis; redis != nil {
		fmt.Fprintf(&b, "  let Redis forget    redis-cli -p %s flushall     (what it granted is lost: the rest of the window is not served)\n"+
			"  kill Redis          kill -9 %d     (from the next window on each pod admits its share by itself)\n", redis.Port(), redis.PID())
	}
	b.WriteString("Ctrl-C ends it and cleans up.\n")
	return b.String()
}
