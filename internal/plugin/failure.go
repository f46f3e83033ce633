package plugin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// failed returns an error of a request to the API server, with what was done and with the cure.
func (s *session) failed(doing string, err error) error {
	return fmt.Errorf("%s: %w; %s", doing, err, s.cure(err))
}

// cure says what helps against an error of a request to the API server.
func (s *session) cure(err error) string {
	var unanswered *url.Error
	switch {
	case errors.Is(err, context.Canceled):
		return "it was interrupted"
	case meta.IsNoMatchError(err):
		return "Weir's CRDs are not installed there: install Weir, or choose another cluster with --context"
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("namespace %s has none of that name: choose another with -n", s.namespace)
	case apierrors.IsForbidden(err):
		return "choose a namespace where you may with -n, or ask for that right"
	case apierrors.IsUnauthorized(err):
		return "log in again, or choose another user or cluster with --context"
	case timedOut(err):
		return fmt.Sprintf("%s has not answered in time: see that it runs, choose another cluster with --context, or wait longer with --request-timeout", s.config.Host)
	case errors.As(err, &unanswered):
		return fmt.Sprintf("%s does not answer as an API server: see that it runs, or choose another cluster with --context", s.config.Host)
	default:
		return "the API server reports this: try again"
	}
}

// timedOut reports whether nobody answered until a time was over.
func timedOut(err error) bool {
	var network net.Error
	return errors.As(err, &network) && network.Timeout() || errors.Is(err, context.DeadlineExceeded) || apierrors.IsTimeout(err)
}

// elsewhere says where nothing was found, and where else to look.
func (s *session) elsewhere() string {
	if s.namespace == "" {
		return "in any namespace"
	}
	return fmt.Sprintf("in namespace %s; -A looks in all namespaces", s.namespace)
}
