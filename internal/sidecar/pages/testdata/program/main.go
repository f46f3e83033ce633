// Command program releases its pages, works on, and prints whether it did and how many
// bytes of its file were resident before and after.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/prometheus/procfs"

	"github.com/weir-dev/weir/internal/sidecar/pages"
)

func main() {
	before := ofFile()
	released, err := pages.Release()
	out, failed := json.Marshal(struct {
		Released      bool
		Before, After uint64
	}{released, before, ofFile()})
	if err != nil || failed != nil {
		fmt.Fprintln(os.Stderr, err, failed)
		os.Exit(1)
	}
	fmt.Println(string(out))
}

// ofFile returns how many bytes of files are resident.
func ofFile() uint64 {
	self, err := procfs.Self()
	if err != nil {
		panic(err)
	}
	status, err := self.NewStatus()
	if err != nil {
		panic(err)
	}
	return status.RssFile
}
