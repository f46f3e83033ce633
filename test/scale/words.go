package main

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"
)

const preface = `# Capacity

Written by ` + "`make scale`" + `: what the leading controller costs at size. etcd, the API server, two replicas of the
controller and all simulated sidecars share the machine that each section names. A sidecar is the real client, enforcer and
reports, with a pod and a token of its own, in one process with the others; its proxy is not part of it. Memory (MiB) and CPU
time (of one core) are those of the leader's process as the kernel counts them. Times are of that machine under that load;
beside load the kernel counts more CPU time for the same work, too.
`

// machine says what the figures were measured on.
func machine(o options) string {
	text := fmt.Sprintf("%d cores, %s", runtime.NumCPU(), runtime.Version())
	if o.remark != "" {
		text += "; " + o.remark
	}
	return text
}

// count writes a number with a comma between thousands.
func count(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// quantile returns the value that a part of them does not exceed.
func quantile(of []time.Duration, part float64) time.Duration {
	if len(of) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(of))
	return sorted[min(len(sorted)-1, int(float64(len(sorted))*part))]
}

// slug is how a title is written in a file's name.
func slug(title string) string { return strings.ToLower(strings.ReplaceAll(title, " ", "-")) }
