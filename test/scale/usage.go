package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// clockTicks is the unit of /proc/PID/stat on Linux.
const clockTicks = 100

// A usage is what a process took until now.
type usage struct {
	cpu       time.Duration
	rss, most float64 // MiB
}

// usageOf reads what a process took.
func usageOf(pid int) (usage, error) {
	var u usage
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return u, err
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(after)
	if len(fields) < 13 {
		return u, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	for _, f := range fields[11:13] {
		ticks, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return u, err
		}
		u.cpu += time.Duration(ticks) * time.Second / clockTicks
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return u, err
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		kib, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 64)
		switch {
		case err != nil:
		case name == "VmRSS":
			u.rss = kib / 1024
		case name == "VmHWM":
			u.most = kib / 1024
		}
	}
	return u, nil
}

// An idle is what the leader takes while nothing changes.
type idle struct {
	usage
	share    float64 // of a core
	writes   float64 // to the API server a second, but for leases
	requests float64 // of any kind, as many
}

// atRest watches the leader while nothing changes.
func (w *world) atRest(ctx context.Context) (idle, error) {
	c := w.leads
	sleep(ctx, 5*time.Second) // what was on its way arrives
	writes, requests, err := w.requests(ctx)
	if err != nil {
		return idle{}, err
	}
	before, err := usageOf(c.PID())
	if err != nil {
		return idle{}, err
	}
	began := time.Now()
	sleep(ctx, w.rest)
	r := idle{}
	if r.usage, err = usageOf(c.PID()); err != nil {
		return idle{}, err
	}
	took := time.Since(began).Seconds()
	r.share = (r.cpu - before.cpu).Seconds() / took
	w2, r2, err := w.requests(ctx)
	r.writes, r.requests = (w2-writes)/took, (r2-requests)/took
	return r, err
}

// requests returns how many requests the API server has answered, but those for leases,
// and how many of them were writes.
func (w *world) requests(ctx context.Context) (writes, all float64, err error) {
	text, err := w.cluster.Clients.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "apiserver_request_total{") || strings.Contains(line, `resource="leases"`) || strings.Contains(line, `verb="WATCH"`) {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, '}')+1:]), 64)
		if err != nil {
			continue
		}
		all += n
		if !strings.Contains(line, `verb="GET"`) && !strings.Contains(line, `verb="LIST"`) {
			writes += n
		}
	}
	return writes, all, nil
}

// figuresOf reads the metrics without labels of a controller.
func (w *world) figuresOf(ctx context.Context, c *replica) (map[string]float64, error) {
	body, err := w.get(ctx, "http://"+c.MetricsAddress()+"/metrics")
	if err != nil {
		return nil, err
	}
	defer body.Close()
	figures := map[string]float64{}
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			figures[name] = v
		}
	}
	return figures, lines.Err()
}

// scrape returns how large the metrics of a controller are, and how long reading them took,
// in the middle of some times.
func (w *world) scrape(ctx context.Context, c *replica) (bytes int64, took time.Duration, err error) {
	var all []time.Duration
	for range 5 {
		began := time.Now()
		body, err := w.get(ctx, "http://"+c.MetricsAddress()+"/metrics")
		if err != nil {
			return 0, 0, err
		}
		bytes, err = io.Copy(io.Discard, body)
		_ = body.Close()
		if err != nil {
			return 0, 0, err
		}
		all = append(all, time.Since(began))
	}
	return bytes, quantile(all, .5), nil
}

// keepProfile keeps a profile of a controller beside its logs: heap, or CPU for some seconds.
func (w *world) keepProfile(ctx context.Context, c *replica, kind, name string) error {
	body, err := w.get(ctx, "http://"+c.profile+"/debug/pprof/"+kind)
	if err != nil {
		return err
	}
	defer body.Close()
	file, err := os.Create(filepath.Join(w.dir, name+".pprof"))
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(file, body)
	return err
}

func (w *world) get(ctx context.Context, url string) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := w.http.Do(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("%s answers %s", url, resp.Status)
	}
	return resp.Body, nil
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
