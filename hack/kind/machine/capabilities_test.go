package machine

import (
	"strings"
	"testing"
)

func TestParseHeld(t *testing.T) {
	const status = "Name:\tx\nCapInh:\t0000000000000000\nCapPrm:\t%\nCapEff:\t0000000000000000\nCapBnd:\t000001fffeffffff\n"
	for name, test := range map[string]struct {
		permitted string
		lacks     []string
	}{
		"bounding set lacks one":     {"000001ffffffffff", []string{"CAP_SYS_RESOURCE"}},
		"permitted set lacks others": {"000001fffffffffc", []string{"CAP_SYS_RESOURCE", "CAP_CHOWN", "CAP_DAC_OVERRIDE"}},
	} {
		t.Run(name, func(t *testing.T) {
			held, err := parseHeld(strings.NewReader(strings.Replace(status, "%", test.permitted, 1)))
			if err != nil {
				t.Fatal(err)
			}
			var lacks []string
			for _, capability := range []string{"CAP_SYS_RESOURCE", "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_CHECKPOINT_RESTORE", "CAP_OF_THE_FUTURE"} {
				if !held.Has(capability) {
					lacks = append(lacks, capability)
				}
			}
			if strings.Join(lacks, " ") != strings.Join(test.lacks, " ") {
				t.Errorf("lacks %v, want %v", lacks, test.lacks)
			}
		})
	}
}

func TestParseHeldRefuses(t *testing.T) {
	for name, status := range map[string]string{
		"a set that is missing":      "CapBnd:\t01\n",
		"a set that is not a number": "CapBnd:\tall\nCapPrm:\t01\n",
	} {
		t.Run(name, func(t *testing.T) {
			if held, err := parseHeld(strings.NewReader(status)); err == nil {
				t.Errorf("parsed as %x", held)
			}
		})
	}
}

func TestUpTo(t *testing.T) {
	for last, want := range map[uint]Capabilities{0: 1, 40: 0x1ffffffffff, 63: 1<<64 - 1} {
		if got := upTo(last); got != want {
			t.Errorf("upTo(%d) = %x, want %x", last, got, want)
		}
	}
}
