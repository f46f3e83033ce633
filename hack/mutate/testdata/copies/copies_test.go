package copies

import (
	"os"
	"os/exec"
	"testing"
)

func TestConvert(t *testing.T) {
	f := &from{Size: 1, Weight: 2, Name: "name", Note: "note"}
	f.Inner.Depth = 3
	got := convert(f)
	if got.Size != 1 || got.Name != "name" || *got.Weight != 2 {
		t.Errorf("got %+v", got)
	}
}

func TestThatWaits(*testing.T) {
	f := &from{}
	f.Inner.Turns = 1
	if turning(f).Twice == 0 {
		select {}
	}
}

func TestNothing(*testing.T) { _ = unused }

func TestThatFails(t *testing.T) { t.Error("always") }

// TestThatLeavesAProcess writes its id where the parent looks for it.
func TestThatLeavesAProcess(t *testing.T) {
	if os.Getenv("MUTATE_TEST_PID") == "" {
		t.Skip("nobody looks")
	}
	c := exec.Command("sh", "-c", `echo $$ >"$MUTATE_TEST_PID"; exec sleep 600`)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for {
		if b, _ := os.ReadFile(os.Getenv("MUTATE_TEST_PID")); len(b) > 0 {
			return
		}
	}
}
