// Package docker runs the docker command, which finds the engine by the rules
// that its users know (DOCKER_HOST, contexts).
package docker

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// Output returns what a docker command prints. It blocks until the command has
// ended; the error holds what it complained of.
func Output(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	err := Pipe(ctx, nil, &out, args...)
	return strings.TrimSpace(out.String()), err
}

// Pipe runs a docker command between two streams, each of which may be nil.
func Pipe(ctx context.Context, stdin io.Reader, stdout io.Writer, args ...string) error {
	var complaint bytes.Buffer
	command := exec.CommandContext(ctx, "docker", args...)
	command.Stdin, command.Stdout, command.Stderr = stdin, stdout, &complaint
	if err := command.Run(); err != nil {
		return fmt.Errorf("docker %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(complaint.Bytes()))
	}
	return nil
}

// HasImage reports whether the engine holds an image.
func HasImage(ctx context.Context, image string) bool {
	_, err := Output(ctx, "image", "inspect", "--format", "{{.Id}}", image)
	return err == nil
}
