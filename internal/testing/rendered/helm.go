package rendered

import (
	"fmt"
	"os/exec"
)

// Helm returns what `helm install weir chart` would install in a namespace with more
// arguments, such as --set, and an error with Helm's words when it would not. Helm is the
// one of the PATH.
func Helm(chart, namespace string, args ...string) (Objects, error) {
	if err := note(chart); err != nil {
		return nil, err
	}
	command := append([]string{"template", "weir", chart, "--namespace", namespace}, args...)
	out, err := exec.Command("helm", command...).Output() //nolint:noctx // it only reads files
	if err != nil {
		return nil, fmt.Errorf("helm template: %w%s", err, said(err))
	}
	return Decode(out)
}
