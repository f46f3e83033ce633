// Command print says which version it is.
package main

import (
	"os"

	"github.com/weir-dev/weir/internal/version"
)

func main() { _, _ = os.Stdout.WriteString(version.String() + "\n") }
