package problem

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Codes of gRPC.
const (
	grpcUnknown           = 2
	grpcInvalidArgument   = 3
	GRPCDeadlineExceeded  = 4
	GRPCResourceExhausted = 8
	grpcUnimplemented     = 12
	grpcInternal          = 13
	GRPCUnavailable       = 14
)

var grpcCodes = map[int]int{
	http.StatusBadRequest:          grpcInvalidArgument,
	http.StatusTooManyRequests:     GRPCResourceExhausted,
	http.StatusInternalServerError: grpcInternal,
	http.StatusNotImplemented:      grpcUnimplemented,
	http.StatusBadGateway:          GRPCUnavailable,
	http.StatusServiceUnavailable:  GRPCUnavailable,
}

// domain is the domain that defines the reasons of ErrorInfo.
const domain = "weir.dev"

// IsGRPC reports whether r is a gRPC call. gRPC-Web is not: it travels as a body.
func IsGRPC(r *http.Request) bool {
	rest, ok := strings.CutPrefix(r.Header.Get("Content-Type"), "application/grpc")
	return ok && (rest == "" || rest[0] == '+' || rest[0] == ';')
}

// GRPCStatus returns the code of a value of grpc-status, or -1 where it is not one.
func GRPCStatus(value string) int {
	if code, err := strconv.Atoi(value); err == nil {
		return code
	}
	return -1
}

// writeGRPC answers with a response of trailers only.
func (p Problem) writeGRPC(w http.ResponseWriter) {
	h := w.Header()
	of := p.RPC(h.Get("Retry-After"))
	h.Set("Content-Type", "application/grpc")
	h.Set("Grpc-Status", strconv.Itoa(int(of.GetCode())))
	h.Set("Grpc-Message", percentEncode(p.Detail))
	if len(of.GetDetails()) > 0 {
		if encoded, err := proto.Marshal(of); err == nil {
			h.Set("Grpc-Status-Details-Bin", base64.RawStdEncoding.EncodeToString(encoded))
		}
	}
	w.WriteHeader(http.StatusOK)
}

// RPC returns the status of a call that is refused. retryAfter is the field of that name, "" for
// none.
func (p Problem) RPC(retryAfter string) *status.Status {
	return &status.Status{Code: int32(p.code()), Message: p.Detail, Details: p.details(retryAfter)}
}

func (p Problem) code() int {
	if p.Code != 0 {
		return p.Code
	}
	if code, ok := grpcCodes[p.Status]; ok {
		return code
	}
	return grpcUnknown
}

// details returns what google.rpc has messages for: when to come back, by the field that
// says so, which limits refused, and why.
func (p Problem) details(retryAfter string) []*anypb.Any {
	var all []proto.Message
	if p.Reason != "" {
		all = append(all, &errdetails.ErrorInfo{Reason: p.Reason, Domain: domain, Metadata: p.Source})
	}
	if seconds, err := strconv.Atoi(retryAfter); err == nil {
		all = append(all, &errdetails.RetryInfo{RetryDelay: durationpb.New(time.Duration(seconds) * time.Second)})
	}
	if len(p.ViolatedPolicies) > 0 {
		failure := new(errdetails.QuotaFailure)
		for _, name := range p.ViolatedPolicies {
			failure.Violations = append(failure.Violations, &errdetails.QuotaFailure_Violation{Subject: name, Description: p.Detail})
		}
		all = append(all, failure)
	}
	var packed []*anypb.Any
	for _, m := range all {
		if detail, err := anypb.New(m); err == nil {
			packed = append(packed, detail)
		}
	}
	return packed
}

// percentEncode writes a status message as the gRPC protocol wants it.
func percentEncode(s string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '%' {
			b.WriteByte('%')
			b.WriteByte(digits[c>>4])
			b.WriteByte(digits[c&15])
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
