package exchange

import (
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
)

// A Handler decides about requests.
type Handler interface {
	// Enter returns what goes along with a request that passes. It writes the answer to any other
	// one to w, and returns nil. It blocks while a request waits for its turn, at most until
	// the context of r is done. A panic of http.ErrAbortHandler ends the request without an answer.
	Enter(w http.ResponseWriter, r *http.Request) Exchange
	// Trailer removes from the trailer of a request what does not pass.
	Trailer(r *http.Request, trailer http.Header)
}

// An Exchange is a request that passes, and its answer. One goroutine at a time calls its
// methods, and none of them blocks. End is the last.
type Exchange interface {
	// Forward says that the request is sent to the app now, unless it returns false. Another
	// goroutine may call cut, which ends the exchange.
	Forward(cut func()) bool
	// Head may change the fields of the answer.
	Head(status int, fields Fields)
	// Data is called with each part of the answer's body.
	Data(p []byte)
	// Trailer may change the trailer of the answer.
	Trailer(fields Fields)
	// Refuse answers a request that ends without an answer of the app.
	Refuse(w http.ResponseWriter, why Ending)
	// End says how the exchange ended.
	End(why Ending)
}

// Fields are those of an answer, or of its trailer.
type Fields interface {
	// Get returns the first value of the field of that name, which is in lower case.
	Get(name string) string
	// Header returns the fields as net/http has them. A change of them changes the
	// answer.
	Header() http.Header
}

// An Ending is how an exchange ends.
type Ending int

// The endings.
const (
	Complete  Ending = iota
	Left             // the client has left
	Malformed        // the body of the request is malformed
	NoAnswer         // the app did not answer
	Broken           // the app broke its answer off
	Cut              // see Exchange.Forward
)

// Enter asks h about r. aborted says that h panicked, which is logged unless it meant to end the
// request.
func Enter(h Handler, w http.ResponseWriter, r *http.Request, log *slog.Logger) (x Exchange, aborted bool) {
	defer func() {
		reason := recover()
		if aborted = reason != nil; !aborted {
			return
		}
		if err, ok := reason.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
			log.Error("a request panicked", "panic", reason, "stack", string(debug.Stack()))
		}
	}()
	return h.Enter(w, r), false
}
