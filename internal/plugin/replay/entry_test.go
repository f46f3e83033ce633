package replay

import (
	"errors"
	"strings"
	"testing"
)

const good = `192.0.2.1 - - [27/Nov/2026:09:00:0%d +0000] "GET / HTTP/1.1" 200 1` + "\n"

func TestRead(t *testing.T) {
	log := strings.Replace(good, "%d", "1", 1) + "\nwrong\n" + strings.Replace(good, "%d", "3", 1)
	var seen []int
	lines, err := Read(strings.NewReader(log), Common, func(e *Entry) error {
		seen = append(seen, e.Time.Second())
		return nil
	})
	if err != nil || lines.Requests != 2 || lines.Unread != 1 || lines.From.Second() != 1 || lines.To.Second() != 3 || len(seen) != 2 {
		t.Errorf("it read %+v, %v (%v)", lines, seen, err)
	}
	if why := lines.Unreadable(); why == nil || !strings.HasPrefix(why.Error(), "line 3: ") {
		t.Errorf("it left out a line because of %v", why)
	}
}

func TestLogsThatCannotBeRead(t *testing.T) {
	failure := errors.New("no")
	for name, tc := range map[string]struct {
		log  string
		do   error
		want string
	}{
		"another format": {"a\nb\n" + good, nil, "choose another with --format"},
		"nothing":        {"\n\n", nil, "the log is empty"},
		"a long line":    {strings.Repeat("x", maxLine+1), nil, "after 0 lines: "},
		"a failure":      {strings.Replace(good, "%d", "1", 1), failure, "line 1: no"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(strings.NewReader(tc.log), Combined, func(*Entry) error { return tc.do })
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

func TestAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "192.0.2.1:80": "192.0.2.1", "[2001:db8::1]:80": "2001:db8::1", "2001:db8::1": "2001:db8::1", "-": "", "pipe": "",
	} {
		if got := addressOf(text); got != want {
			t.Errorf("%s has the address %q, want %q", text, got, want)
		}
	}
}
