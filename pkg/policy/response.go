package policy

import "net/http"

// Response says what clients get, in answers to requests that limits refuse and
// in those to requests that they admit.
type Response struct {
	IETF       bool `json:"ietf,omitempty"`       // the fields RateLimit-Policy and RateLimit
	XRateLimit bool `json:"xRateLimit,omitempty"` // X-RateLimit-Limit, -Remaining and -Reset

	Quota           QuotaFields `json:"quota"`                     // when those fields are sent
	GRPCUnavailable bool        `json:"grpcUnavailable,omitempty"` // gRPC clients see UNAVAILABLE instead of RESOURCE_EXHAUSTED
	StatusCode      int         `json:"statusCode"`                // of a refusal: 429 or 503
	Jitter          int         `json:"jitter,omitempty"`          // percent of the wait that Retry-After may add, 0 to 100
	Body            BodyType    `json:"body"`                      // of a refusal
}

// QuotaFields says when the fields that say what is left are sent.
type QuotaFields string

// When fields are sent.
const (
	OnRejection QuotaFields = "OnRejection" // with refusals
	NearLimit   QuotaFields = "NearLimit"   // with refusals, and when less than a quarter is left
	Always      QuotaFields = "Always"      // with every response
)

// BodyType is what the body of a refusal is.
type BodyType string

// The bodies.
const (
	ProblemJSON BodyType = "ProblemJSON" // application/problem+json, RFC 9457
	TextBody    BodyType = "Text"        // a sentence, text/plain
	NoBody      BodyType = "None"
)

// DefaultResponse is what clients get by a policy that does not say.
func DefaultResponse() Response {
	return Response{IETF: true, Quota: NearLimit, StatusCode: http.StatusTooManyRequests, Jitter: 10, Body: ProblemJSON}
}

// Shows reports whether the answer to an admitted request shows what is left of a
// limit.
func (r Response) Shows(remaining, limit int64) bool {
	switch {
	case !r.IETF && !r.XRateLimit:
		return false
	case r.Quota == Always:
		return limit > 0
	case r.Quota == NearLimit:
		return 4*remaining < limit
	default:
		return false
	}
}

// IsZero reports whether r says what goes without saying. Such a response is not part
// of an encoded snapshot, so that sidecars read it that do not know of responses.
func (r Response) IsZero() bool { return r == Response{} || r == DefaultResponse() }

func (r Response) orDefault() Response {
	if r.IsZero() {
		return DefaultResponse()
	}
	return r
}

func (r Response) validate(errs *problems, path string) {
	if r.IsZero() {
		return
	}
	oneOf(errs, path+".quota", r.Quota, OnRejection, NearLimit, Always)
	if r.StatusCode != http.StatusTooManyRequests && r.StatusCode != http.StatusServiceUnavailable {
		errs.add(path+".statusCode", "is %d: use 429 or 503", r.StatusCode)
	}
	errs.within(path+".jitter", int64(r.Jitter), 0, 100)
	oneOf(errs, path+".body", r.Body, ProblemJSON, TextBody, NoBody)
}
