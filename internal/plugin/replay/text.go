package replay

import (
	"errors"
	"net/http"
	"strings"
	"time"
)

// timeLayout is that of the common log format.
const timeLayout = "02/Jan/2006:15:04:05 -0700"

var (
	errQuoted  = errors.New(`there is no quoted request such as "GET / HTTP/1.1"`)
	errTime    = errors.New("there is no time such as [10/Oct/2026:13:55:36 +0000]")
	errRequest = errors.New("the request is not METHOD TARGET PROTOCOL")
)

// parseText reads a line of the common format, or of the combined one, which has the last two:
//
//	client identity user [time] "request" status bytes "referrer" "user agent"
//
// Fields behind these are left alone.
func parseText(line string) (*Entry, error) {
	before, rest, ok := strings.Cut(line, " [")
	if !ok {
		return nil, errTime
	}
	stamp, rest, ok := strings.Cut(rest, "]")
	if !ok {
		return nil, errTime
	}
	at, err := time.Parse(timeLayout, stamp)
	if err != nil {
		return nil, errTime
	}
	texts := quoted(rest)
	if len(texts) == 0 {
		return nil, errQuoted
	}
	words := strings.Fields(texts[0])
	if len(words) != 3 {
		return nil, errRequest // such as a request that a server could not read
	}
	client, _, _ := strings.Cut(before, " ")
	e := &Entry{Time: at, Method: words[0], Target: words[1], Client: addressOf(client), Header: http.Header{}}
	for i, name := range []string{"Referer", "User-Agent"} {
		if len(texts) > i+1 && texts[i+1] != "-" {
			e.Header.Set(name, texts[i+1])
		}
	}
	return e, nil
}

// quoted returns the texts in quotation marks. A backslash stands before a mark in a text.
func quoted(s string) []string {
	var all []string
	for {
		_, rest, ok := strings.Cut(s, `"`)
		if !ok {
			return all
		}
		var text strings.Builder
		i := 0
		for ; i < len(rest) && rest[i] != '"'; i++ {
			if rest[i] == '\\' && i+1 < len(rest) && (rest[i+1] == '"' || rest[i+1] == '\\') {
				i++
			}
			text.WriteByte(rest[i])
		}
		if i == len(rest) {
			return all
		}
		all, s = append(all, text.String()), rest[i+1:]
	}
}
