package postgres

import (
	"fmt"
	"strings"

	"github.com/weir-dev/weir/pkg/store"
)

// SQLSTATE codes that are acted upon.
const (
	undefinedFunction     = "42883"
	undefinedTable        = "42P01"
	undefinedObject       = "42704"
	invalidSchemaName     = "3F000"
	insufficientPrivilege = "42501"
)

// unable are the SQLSTATE codes, or their classes, with which a server says that it
// cannot serve now, and what that means to a user. Any other is a defect of ours.
var unable = []struct{ code, meaning string }{
	{"25006", "it is a standby or read-only, point the policy at the primary"},
	{"28", "it refuses the user name, password or certificate"},
	{"3D000", "it has no such database"},
	{"40001", "another transaction was in the way; its default isolation is not read committed"},
	{"40P01", "another transaction was in the way"},
	{"53100", "its disk is full"},
	{"53200", "its memory is full"},
	{"53300", "it has no connection left (max_connections)"},
	{"53", "it has too little of some resource"},
	{"55P03", "somebody else holds a lock on Weir's tables"},
	{"57014", "it did not answer in time, or somebody cancelled the call"},
	{"57P03", "it is starting or stopping"},
	{"57P", "it is stopping or restarting"},
	{"58", "it cannot read or write its files"},
	{"08", "the connection broke"},
}

// explain turns an error of the client into one of this package: unavailable when
// no answer came, or one that the server cannot serve.
func (s *Store) explain(err error) error {
	code := codeOf(err)
	if code == "" || code == insufficientPrivilege {
		return &store.UnavailableError{Store: s.name, Cause: err}
	}
	for _, u := range unable {
		if strings.HasPrefix(code, u.code) {
			return &store.UnavailableError{Store: s.name, Cause: fmt.Errorf("%s: %w", u.meaning, err)}
		}
	}
	return fmt.Errorf("%s: %w", s.name, err)
}
