package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Bounds on one review. The API server reads objects of up to 3 MiB, and stores up to
// 1.5 MiB of one.
const (
	maxReview = 7 << 20 // bytes: two objects and what is said about them
	maxObject = 3 << 20 // bytes of one as JSON

	maxObjectMemory = 6 << 20 // bytes, as weigh counts them: 15,000 containers, or 150,000 variables
	maxAboutMemory  = 1 << 20 // bytes, the same of what is said about the objects

	// bodyTimeout bounds how long a body may take to arrive. The API server has it ready.
	bodyTimeout = 5 * time.Second
)

var reviewShape = shapeOf[admissionv1.AdmissionReview]()

// An endpoint serves the reviews of one kind of object over HTTP. The cost of a review is known
// before anything of it is decoded, and is taken from a budget that all endpoints share.
type endpoint struct {
	hook   *admission.Webhook
	object *shape
	budget *budget

	// refuse returns the handler for an object that is not decoded because of err.
	refuse func(err error) admission.Handler
}

// ServeHTTP implements http.Handler. A review that cannot be answered has an HTTP status,
// which the API server takes for a failed call. 503 means that the budget is spent; the API
// server then asks again after a second, while its own time lasts.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	share := share{of: e.budget}
	defer share.release()
	answer, err := e.answer(w, r, &share)
	if err == nil {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			ctrl.Log.WithName("webhook").V(1).Info("The answer to a review was not sent", "error", err.Error())
		}
		return
	}
	status := http.StatusBadRequest
	if failed, ok := errors.AsType[*statusError](err); ok {
		status = failed.status
	}
	refusedReviews.WithLabelValues(strconv.Itoa(status)).Inc()
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	http.Error(w, shorten(err.Error()), status)
}

// A statusError is an error with another HTTP status than 400.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string { return e.text }

var errBusy = &statusError{http.StatusServiceUnavailable, "the reviews in flight take all the memory that is set aside for them: try again"}

func (e *endpoint) answer(w http.ResponseWriter, r *http.Request, share *share) (*admissionv1.AdmissionReview, error) {
	body, err := read(w, r, share)
	if err != nil {
		return nil, err
	}
	about, err := weigh(body, reviewShape, maxAboutMemory)
	if err != nil {
		return nil, fmt.Errorf("read the review: %w", err)
	}
	var review admissionv1.AdmissionReview
	switch err := utiljson.Unmarshal(body, &review); {
	case err != nil:
		return nil, fmt.Errorf("decode the review: %w", err)
	case review.Request == nil || review.GroupVersionKind() != admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"):
		return nil, errors.New("the body is not the request of an AdmissionReview of admission.k8s.io/v1: send that")
	}
	hook, objects := e.hook, 0
	for _, raw := range [][]byte{review.Request.Object.Raw, review.Request.OldObject.Raw} {
		memory, err := e.weigh(raw)
		if objects += memory; err != nil {
			hook = &admission.Webhook{Handler: e.refuse(err)}
			break
		}
	}
	if !share.raise(cost(len(body), about+objects)) {
		return nil, errBusy
	}
	response := hook.Handle(r.Context(), admission.Request{AdmissionRequest: *review.Request})
	return &admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: &response.AdmissionResponse}, nil
}

// weigh weighs an object, if there is one.
func (e *endpoint) weigh(raw []byte) (memory int, err error) {
	switch {
	case len(raw) == 0:
		return 0, nil
	case raw[0] != '{': // of YAML and the like, which decoders may know too, the cost is not known
		return 0, errors.New("it is not a JSON object")
	case len(raw) > maxObject:
		return 0, fmt.Errorf("the object has %d bytes as JSON: use up to %d", len(raw), maxObject)
	}
	return weigh(raw, e.object, maxObjectMemory)
}

// read returns the body. Its memory is taken from the budget as it arrives, so a client that
// sends slowly holds no more than it has sent.
func read(w http.ResponseWriter, r *http.Request, share *share) ([]byte, error) {
	if kind := r.Header.Get("Content-Type"); kind != "application/json" {
		return nil, &statusError{http.StatusUnsupportedMediaType, fmt.Sprintf("the content type is %q: send application/json", kind)}
	}
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Now().Add(bodyTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, err
	}
	body := make([]byte, 0, 16<<10)
	for {
		if !share.raise(2 * cap(body)) { // this and the ones before, each half of the next
			return nil, errBusy
		}
		n, err := io.ReadFull(r.Body, body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case len(body) > maxReview:
			return nil, &statusError{http.StatusRequestEntityTooLarge, fmt.Sprintf("the review is too long: send up to %d bytes", maxReview)}
		case err == nil:
			body = append(make([]byte, 0, 2*cap(body)), body...)
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			// A deadline that passes later would end the context of the request.
			if err := control.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
				return nil, err
			}
			return body, nil
		default:
			return nil, fmt.Errorf("read the body: %w", err)
		}
	}
}

// shorten bounds what an answer repeats of a review.
func shorten(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxNote)], "")
}
