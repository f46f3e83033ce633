package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/selection"
)

func newWhy() *cobra.Command {
	var id string
	most := 20
	cmd := &cobra.Command{
		Use:   "why [POD] [--request-id ID]",
		Short: "List the requests that sidecars refused last, and why",
		Long: "List the requests that the sidecar of a pod, or those of all pods of the namespace, answered in place of the app last: what " +
			"refused each, by which limit and counter, and when it may come again. A sidecar keeps its last 128, without queries of " +
			"targets and without values of keys; HASH is as in the status. Refusals of Envoy's rate limit service and of the check API are " +
			"not among them.\n\n" +
			"It asks the sidecars through the API server, as kubectl port-forward does. It needs the verbs get on pods, list on pods without " +
			"POD, and create on pods/portforward.",
		Example: "  kubectl weir why -n shop checkout-1\n" +
			"  kubectl weir why -n shop --request-id 2f1c7a90",
		Args: cobra.MaximumNArgs(1),
	}
	flags := cmd.Flags()
	flags.StringVar(&id, "request-id", "", "only requests with this X-Request-Id, or with this trace ID in traceparent")
	flags.IntVar(&most, "last", most, "how many are listed at most; 0 lists all")
	where, as := newNamespaced(cmd), newFormat(cmd)
	cmd.ValidArgsFunction = where.complete(podNames)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if most < 0 {
			return fmt.Errorf("--last is %d: use 0 or more", most)
		}
		at, err := where.open()
		if err != nil {
			return err
		}
		pods, err := at.sidecarPods(cmd.Context(), args)
		if err != nil {
			return err
		}
		found, err := at.why(cmd.Context(), pods, id, most)
		if len(found.Items) == 0 && as.String() == "table" {
			if found.answered > 0 {
				cmd.PrintErrln(found.nothing(id))
			}
			return err
		}
		return errors.Join(as.print(cmd.OutOrStdout(), found, whyHeader, whyCells(found.Items)), err)
	}
	return cmd
}

// sidecarPods returns the pod that is named, or all of the namespace whose sidecars can be asked.
func (s *session) sidecarPods(ctx context.Context, names []string) ([]corev1.Pod, error) {
	if len(names) == 1 {
		one, err := s.sidecarPod(ctx, names[0])
		if err != nil {
			return nil, err
		}
		return []corev1.Pod{*one}, nil
	}
	var all corev1.PodList
	if err := s.List(ctx, &all, client.InNamespace(s.namespace), client.HasLabels{v1alpha1.EnforcerLabel}); err != nil {
		return nil, s.failed("listing pods", err)
	}
	pods := slices.DeleteFunc(all.Items, func(p corev1.Pod) bool { return !selection.HasSidecar(&p) || p.Status.Phase != corev1.PodRunning })
	if len(pods) == 0 {
		return nil, fmt.Errorf("no pod of namespace %s has a sidecar that runs: choose another with -n; kubectl weir status says which pods have none, and why", s.namespace)
	}
	return pods, nil
}

// A whyList is what is printed as JSON and YAML.
type whyList struct {
	Items []whyRow `json:"items"`
	Total int      `json:"total"` // refused since the sidecars started

	answered int // sidecars
}

// nothing says that no row was found.
func (l *whyList) nothing(id string) string {
	switch {
	case l.Total == 0 && l.answered == 1:
		return "The sidecar refused no request since it started."
	case l.Total == 0:
		return fmt.Sprintf("No request was refused by %d sidecars since they started.", l.answered)
	case id != "":
		return fmt.Sprintf("None of the last refusals has that ID. The sidecars refused %d requests since they started, and keep the last %d each.", l.Total, keptRefusals)
	default:
		return ""
	}
}

// keptRefusals is how many a sidecar keeps.
const keptRefusals = 128

// A whyRow is a request that a sidecar answered in place of the app.
type whyRow struct {
	Pod string `json:"pod"`
	refusal
}

// A refusal is as the sidecar has it.
type refusal struct {
	Time       time.Time `json:"time"`
	RequestID  string    `json:"requestId,omitempty"`
	TraceID    string    `json:"traceId,omitempty"`
	Method     string    `json:"method"`
	Path       string    `json:"path"`
	Status     int       `json:"status"`
	Reason     string    `json:"reason,omitempty"`
	Object     string    `json:"object,omitempty"`
	Limit      string    `json:"limit,omitempty"`
	Hash       string    `json:"hash,omitempty"`
	RetryAfter string    `json:"retryAfter,omitempty"` // seconds
	Detail     string    `json:"detail"`
}

var whyHeader = []string{"TIME", "POD", "REQUEST-ID", "METHOD", "PATH", "STATUS", "OBJECT", "LIMIT", "HASH", "RETRY", "WHY"}

func whyCells(rows []whyRow) [][]string {
	cells := make([][]string, 0, len(rows))
	for i := range rows {
		r := &rows[i]
		retry := ""
		if r.RetryAfter != "" {
			retry = r.RetryAfter + "s"
		}
		id := cmp.Or(r.RequestID, r.TraceID)
		cells = append(cells, []string{
			r.Time.UTC().Format(time.RFC3339), r.Pod, oneLine(&id), oneLine(&r.Method), oneLine(&r.Path), strconv.Itoa(r.Status),
			r.Object, r.Limit, r.Hash, retry, strings.ReplaceAll(oneLine(&r.Detail), `\"`, `"`),
		})
	}
	return cells
}

// why asks the sidecars of pods which requests they refused last. The error is of pods that did not
// answer; the others' rows are returned.
func (s *session) why(ctx context.Context, pods []corev1.Pod, id string, most int) (*whyList, error) {
	answers, errs := make([]*sidecarRefusals, len(pods)), make([]error, len(pods))
	var asking errgroup.Group
	asking.SetLimit(atATime)
	for i := range pods {
		asking.Go(func() error {
			answers[i], errs[i] = s.refusals(ctx, &pods[i])
			return nil
		})
	}
	_ = asking.Wait() // the errors are in errs
	found := &whyList{Items: []whyRow{}}
	for i, all := range answers {
		if errs[i] != nil {
			continue
		}
		found.answered++
		found.Total += all.Total
		for _, x := range all.Items {
			if id == "" || x.RequestID == id || x.TraceID == id {
				found.Items = append(found.Items, whyRow{pods[i].Name, x})
			}
		}
	}
	slices.SortStableFunc(found.Items, func(a, b whyRow) int { return b.Time.Compare(a.Time) })
	if most > 0 && len(found.Items) > most {
		found.Items = found.Items[:most]
	}
	return found, errors.Join(errs...)
}

// atATime is how many sidecars are asked at the same time, so that one that does not answer holds up few.
const atATime = 16

// refusals asks the sidecar of a pod.
func (s *session) refusals(ctx context.Context, pod *corev1.Pod) (*sidecarRefusals, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	all := &sidecarRefusals{}
	return all, s.askSidecar(ctx, pod, func(at sidecar) error {
		return at.ask(ctx, http.MethodGet, "/debug/refusals", nil, all)
	})
}

// sidecarRefusals is what a sidecar answers.
type sidecarRefusals struct {
	Items []refusal `json:"items"`
	Total int       `json:"total"`
}

// askSidecar opens a tunnel to the sidecar of a pod, and asks it.
func (s *session) askSidecar(ctx context.Context, pod *corev1.Pod, ask func(sidecar) error) error {
	way, err := openTunnel(ctx, s.config, pod, checkPort)
	if err != nil {
		return fmt.Errorf("connecting to pod %s: %w; this takes the verb create on pods/portforward, and what kubectl port-forward takes", pod.Name, err)
	}
	defer way.close()
	if err := ask(sidecar{way.client()}); err != nil {
		return fmt.Errorf("asking the sidecar of pod %s: %w", pod.Name, err)
	}
	return nil
}
