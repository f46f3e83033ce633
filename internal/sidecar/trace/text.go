package trace

import (
	"context"
	"strings"
	"unicode/utf8"

	api "go.opentelemetry.io/otel/trace"
)

// Bounds of the text that a client chooses. A batch goes in one message, which a
// collector takes up to 4 MiB of, so one client's long text would lose the spans of
// everybody.
const (
	maxText  = 1024 // bytes of a text
	maxState = 512  // bytes of a trace state; the least that W3C Trace Context wants passed on
)

// text returns s as a span may have it: whole characters of at most maxText bytes.
// A message with other bytes than UTF-8 is not sent at all.
func text(s string) string {
	if len(s) > maxText {
		end := maxText
		for end > maxText-utf8.UTFMax && !utf8.RuneStart(s[end]) {
			end--
		}
		s = s[:end]
	}
	return strings.ToValidUTF8(s, "?")
}

// withoutLongState returns ctx with a trace state of at most maxState bytes, or none.
// The request keeps its header, so that the app has it all.
func withoutLongState(ctx context.Context) context.Context {
	caller := api.SpanContextFromContext(ctx)
	if len(caller.TraceState().String()) <= maxState {
		return ctx
	}
	return api.ContextWithRemoteSpanContext(ctx, caller.WithTraceState(api.TraceState{}))
}
