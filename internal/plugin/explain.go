package plugin

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/internal/controlplane/selection"
)

// patience is how long a sidecar may take to answer.
const patience = 15 * time.Second

func newExplain() *cobra.Command {
	var line, from string
	var headers []string
	cmd := &cobra.Command{
		Use:   "explain POD --request 'METHOD TARGET' [-H 'NAME: VALUE']...",
		Short: "Show which limits of a pod count a request, and what is left of them",
		Long: "Show which limits and pools of a pod apply to a request, by which values of their keys, what is left of each, and " +
			"whether the request would be admitted now. Nothing is taken, and the app is not called.\n\n" +
			"It asks the pod's sidecar through the API server, as kubectl port-forward does, and judges by the policies in force there. " +
			"It needs the verbs get on pods and create on pods/portforward.",
		Example: "  kubectl weir explain -n shop checkout-1 --request 'POST /v1/orders' -H 'x-tenant: acme'",
		Args:    cobra.ExactArgs(1),
	}
	flags := cmd.Flags()
	flags.StringVar(&line, "request", "", "method and target of the request, such as 'GET /x?y=1'")
	flags.StringArrayVarP(&headers, "header", "H", nil, "header of the request, such as 'x-tenant: acme'; may be repeated")
	flags.StringVar(&from, "client", "192.0.2.1", "IP address that the connection comes from")
	cobra.CheckErr(cmd.MarkFlagRequired("request"))
	where, as := newNamespaced(cmd), newFormat(cmd)
	cmd.ValidArgsFunction = where.complete(podNames)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		tries, err := readTries([]string{line}, headers, "")
		if err != nil {
			return err
		}
		if net.ParseIP(from) == nil {
			return fmt.Errorf("--client is %q: use an IP address", from)
		}
		r, err := tries[0].http(cmd.Context(), from)
		if err != nil {
			return err
		}
		at, err := where.open()
		if err != nil {
			return err
		}
		found, err := at.explain(cmd.Context(), args[0], r)
		if err != nil {
			return err
		}
		for _, warning := range found.warnings {
			cmd.PrintErrln("Warning: " + warning)
		}
		if err := as.print(cmd.OutOrStdout(), found, explainHeader, explainCells(found.Items)); err != nil || as.String() != "table" {
			return err
		}
		cmd.PrintErrln(found.verdict())
		return nil
	}
	return cmd
}

// explain asks the sidecar of a pod what becomes of a request.
func (s *session) explain(ctx context.Context, name string, r *http.Request) (*explanation, error) {
	pod, err := s.sidecarPod(ctx, name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var found *explanation
	err = s.askSidecar(ctx, pod, func(at sidecar) (err error) {
		found, err = explain(ctx, at, r)
		return err
	})
	return found, err
}

// sidecarPod returns a pod with a sidecar that can be asked.
func (s *session) sidecarPod(ctx context.Context, name string) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	if err := s.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: strings.TrimPrefix(name, "pod/")}, pod); err != nil {
		return nil, s.failed("reading the pod", err)
	}
	switch {
	case !selection.HasSidecar(pod):
		return nil, fmt.Errorf("pod %s has no sidecar, so nothing limits requests to it: kubectl weir status says why", pod.Name)
	case pod.Status.Phase != corev1.PodRunning:
		return nil, fmt.Errorf("pod %s is %s: choose one that runs", pod.Name, pod.Status.Phase)
	}
	return pod, nil
}

// An explanation is what is printed as JSON and YAML.
type explanation struct {
	Answer string       `json:"answer"` // of the pod: admits, refuses or unknown
	Items  []explainRow `json:"items"`

	warnings []string
}

// An explainRow is what one limit, or one pool, says of the request.
type explainRow struct {
	Object       string  `json:"object"`          // kind/name
	Limit        string  `json:"limit,omitempty"` // of a policy; the partition of a pool
	Result       string  `json:"result"`          // counted, skipped, rejected or unmatched
	Value        *string `json:"value,omitempty"` // of the key
	Hash         string  `json:"hash,omitempty"`  // of the value, as in status.hottestKeys
	Cost         *int64  `json:"cost,omitempty"`
	Left         *int64  `json:"left,omitempty"` // of the rate that binds, or of the pod's share of a pool
	Of           *int64  `json:"of,omitempty"`
	ResetAfterMs *int64  `json:"resetAfterMs,omitempty"`
	Answer       string  `json:"answer,omitempty"` // admits, refuses or unknown, of one that has a say
	Reason       string  `json:"reason,omitempty"`

	shadow bool // a refusal lets the request pass
}

// The answers.
const (
	admits  = "admits"
	refuses = "refuses"
	unclear = "unknown"
)

func (e *explanation) verdict() string {
	if e.Answer == unclear {
		return "It is unknown whether the pod admits this request now."
	}
	return "The pod " + e.Answer + " this request now."
}

var explainHeader = []string{"OBJECT", "LIMIT", "RESULT", "VALUE", "HASH", "COST", "LEFT", "OF", "RESETS", "ANSWER", "REASON"}

func explainCells(rows []explainRow) [][]string {
	cells := make([][]string, 0, len(rows))
	for _, r := range rows {
		resets := ""
		if r.ResetAfterMs != nil {
			resets = short(*r.ResetAfterMs)
		}
		cells = append(cells, []string{r.Object, r.Limit, r.Result, oneLine(r.Value), r.Hash, figure(r.Cost), figure(r.Left), figure(r.Of), resets, r.Answer, r.Reason})
	}
	return cells
}

// short writes a time without digits that nobody reads.
func short(milliseconds int64) string {
	d := time.Duration(milliseconds) * time.Millisecond
	if d > 10*time.Second {
		d = d.Round(time.Second)
	}
	return d.String()
}
