package replay

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// An Entry is one request of a log.
type Entry struct {
	Time   time.Time
	Method string
	Target string // path and query, or a whole URL
	Host   string
	Client string      // IP address, empty where the log has none
	Header http.Header // as far as the log has them
}

// forwardedFor carries the client of a log to policies that trust one proxy.
const forwardedFor = "X-Forwarded-For"

// request returns the request as a sidecar gets it behind one proxy.
func (e *Entry) request() (*http.Request, error) {
	target, err := url.ParseRequestURI(e.Target)
	if err != nil {
		return nil, err
	}
	r := &http.Request{
		Method: e.Method, URL: target, Host: e.Host, Header: e.Header, Body: http.NoBody,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, RequestURI: e.Target,
	}
	if r.Header == nil {
		r.Header = http.Header{}
	}
	if r.Host == "" {
		r.Host = target.Host
	}
	r.Header.Del(forwardedFor)
	if e.Client != "" {
		r.Header.Set(forwardedFor, e.Client)
		r.RemoteAddr = net.JoinHostPort(e.Client, "1024")
	}
	return r, nil
}

// addressOf returns the IP address of a text that may have a port, empty when it has none.
func addressOf(text string) string {
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at.Addr().String()
	}
	if at, err := netip.ParseAddr(text); err == nil {
		return at.String()
	}
	return ""
}

// A Format is how a log is written.
type Format string

// The formats.
const (
	Common    Format = "common"     // of the Apache HTTP Server
	Combined  Format = "combined"   // the same with the referrer and the user agent: nginx' default
	EnvoyJSON Format = "envoy-json" // a JSON object a line, with the names of Envoy, Envoy Gateway or Istio
)

// Formats are all of them.
var Formats = []string{string(Common), string(Combined), string(EnvoyJSON)}

// maxLine bounds a line of a log, in bytes.
const maxLine = 1 << 20

// Lines says what became of the lines of a log.
type Lines struct {
	Requests int64     `json:"requests"`
	Unread   int64     `json:"unread"` // lines that are not requests in the format
	From     time.Time `json:"from"`   // of the first and the last request
	To       time.Time `json:"to"`

	firstUnread error
}

// Read calls do for each request of a log, in its order. The error says why do failed, or
// that less than half of the lines could be read.
func Read(log io.Reader, format Format, do func(*Entry) error) (Lines, error) {
	var lines Lines
	parse := parseText
	if format == EnvoyJSON {
		parse = parseEnvoy
	}
	scanner := bufio.NewScanner(log)
	scanner.Buffer(nil, maxLine)
	for n := 1; scanner.Scan(); n++ {
		if len(scanner.Bytes()) == 0 {
			continue
		}
		entry, err := parse(scanner.Text())
		if err != nil {
			if lines.Unread++; lines.firstUnread == nil {
				lines.firstUnread = fmt.Errorf("line %d: %w", n, err)
			}
			continue
		}
		if lines.Requests++; lines.Requests == 1 {
			lines.From = entry.Time
		}
		lines.To = entry.Time
		if err := do(entry); err != nil {
			return lines, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := scanner.Err(); err != nil {
		return lines, fmt.Errorf("after %d lines: %w", lines.Requests+lines.Unread, err)
	}
	return lines, lines.check(format)
}

// Unreadable returns why the first line was left out, nil when none was.
func (l *Lines) Unreadable() error { return l.firstUnread }

func (l *Lines) check(format Format) error {
	switch {
	case l.Requests+l.Unread == 0:
		return errors.New("the log is empty")
	case l.Unread > l.Requests:
		return fmt.Errorf("%d of %d lines are not in the format %s: choose another with --format; %w", l.Unread, l.Requests+l.Unread, format, l.firstUnread)
	default:
		return nil
	}
}
