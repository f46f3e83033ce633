package frames

import (
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/http2"
)

// repeating is an app that answers each request with what comes of it, as windows allow. Its frames are
// written under a mutex.
func repeating(app *end, write *sync.Mutex) (ended *sync.WaitGroup) {
	type repeated struct {
		left   string
		window int
		over   bool
	}
	ended = new(sync.WaitGroup)
	ended.Go(func() {
		all := map[uint32]*repeated{}
		for {
			f, err := app.framer.ReadFrame()
			if err != nil {
				return
			}
			r, n := all[f.Header().StreamID], uint32(0)
			write.Lock()
			switch f := f.(type) {
			case *http2.MetaHeadersFrame:
				r = &repeated{window: answerWindow}
				all[f.StreamID] = r
				app.headers(f.StreamID, false, ":status", "200", "x-table", strings.Repeat("t", 100))
			case *http2.DataFrame:
				n = uint32(len(f.Data()))
				r.left, r.over = r.left+string(f.Data()), f.StreamEnded()
			case *http2.WindowUpdateFrame:
				if r != nil {
					r.window += int(f.Increment)
				}
			}
			if n > 0 {
				app.must(app.framer.WriteWindowUpdate(0, n))
				app.must(app.framer.WriteWindowUpdate(f.Header().StreamID, n))
			}
			if r != nil {
				n := min(len(r.left), r.window)
				part := r.left[:n]
				r.left, r.window = r.left[n:], r.window-n
				if last := r.over && r.left == ""; n > 0 || last {
					app.data(f.Header().StreamID, last, part)
					if last {
						delete(all, f.Header().StreamID)
					}
				}
			}
			write.Unlock()
		}
	})
	return ended
}

// received reads what comes over some streams, gives it back to their windows under a mutex, and
// returns how much it was.
func received(c *end, streams int, write *sync.Mutex) (got map[uint32]int) {
	got = map[uint32]int{}
	for ended := 0; ended < streams; {
		f, err := c.framer.ReadFrame()
		if err != nil {
			break
		}
		d, ok := f.(*http2.DataFrame)
		if !ok {
			continue
		}
		n := uint32(len(d.Data()))
		if got[d.StreamID] += int(n); d.StreamEnded() {
			ended++
		} else if n > 0 {
			write.Lock()
			_ = c.framer.WriteWindowUpdate(0, n)
			_ = c.framer.WriteWindowUpdate(d.StreamID, n)
			write.Unlock()
		}
	}
	return got
}

// TestSettingsMayChangeWhileBodiesPass, those of the client and those of the app.
func TestSettingsMayChangeWhileBodiesPass(t *testing.T) {
	const streams, parts, size = 4, 60, 1000 // stay below the windows of the client's connection
	settings := []http2.Setting{
		{ID: http2.SettingInitialWindowSize, Val: 1},
		{ID: http2.SettingHeaderTableSize, Val: 0},
		{ID: http2.SettingInitialWindowSize, Val: 70_000},
		{ID: http2.SettingMaxFrameSize, Val: 1<<24 - 1},
		{ID: http2.SettingInitialWindowSize, Val: 0},
		{ID: http2.SettingHeaderTableSize, Val: 1 << 20},
		{ID: http2.SettingInitialWindowSize, Val: 300},
		{ID: http2.SettingMaxConcurrentStreams, Val: 0},
		{ID: http2.SettingInitialWindowSize, Val: 65535},
		{ID: http2.SettingMaxConcurrentStreams, Val: 100},
	}
	w := newWorld(t)
	c := w.client()
	c.ask(1, "POST", "/", false)
	app := w.accept()
	var ofApp, ofClient sync.Mutex
	set := func(e *end, write *sync.Mutex, s http2.Setting) {
		write.Lock()
		defer write.Unlock()
		e.must(e.framer.WriteSettings(s))
	}
	repeated := repeating(app, &ofApp)
	done := make(chan map[uint32]int, 1)
	go func() { done <- received(c, streams, &ofClient) }()
	for part := range parts {
		set(c, &ofClient, settings[part%len(settings)])
		set(app, &ofApp, settings[(part+3)%len(settings)])
		ofClient.Lock()
		for id := uint32(1); id < 2*streams; id += 2 {
			if part == 0 && id > 1 {
				c.ask(id, "POST", "/", false)
			}
			c.data(id, part == parts-1, strings.Repeat("x", size))
		}
		ofClient.Unlock()
	}
	last := http2.Setting{ID: http2.SettingInitialWindowSize, Val: 65535}
	set(c, &ofClient, last)
	set(app, &ofApp, last)
	got := <-done
	for id := uint32(1); id < 2*streams; id += 2 {
		if n := got[id]; n != parts*size {
			t.Errorf("stream %d has %d bytes of %d", id, n, parts*size)
		}
	}
	w.wantWindows()
	app.Close()
	repeated.Wait()
}
