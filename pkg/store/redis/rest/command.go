package rest

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// errProtocol is of a client that does not write commands as arrays of strings.
var errProtocol = errors.New("what is written is not a command of the protocol of Redis")

// parse returns the commands at the beginning of b, and what follows them. Their names are
// lower case, and the arguments of scripts in hexadecimal. An error is of b as a whole.
func parse(b []byte) (commands [][]string, rest []byte, err error) {
	for {
		words, after, err := parseCommand(b)
		if err != nil || words == nil {
			return commands, b, err
		}
		command, err := texts(words)
		if err != nil {
			return nil, b, err
		}
		commands, b = append(commands, command), after
	}
}

// parseCommand returns the words of one command, nil when it is not whole.
func parseCommand(b []byte) (words [][]byte, rest []byte, err error) {
	n, b, err := number(b, '*')
	if err != nil || n < 0 {
		return nil, nil, err
	}
	if n == 0 {
		return nil, nil, errProtocol
	}
	for range n {
		var size int
		if size, b, err = number(b, '$'); err != nil || size < 0 || len(b) < size+2 {
			return nil, nil, err
		}
		words, b = append(words, b[:size]), b[size+2:]
	}
	return words, b, nil
}

// number returns the number in the first line, which begins with a kind, and what follows
// that line; -1 when the line is not whole.
func number(b []byte, kind byte) (n int, rest []byte, err error) {
	if len(b) > 0 && b[0] != kind {
		return 0, nil, errProtocol
	}
	end := bytes.Index(b, []byte("\r\n"))
	if end < 0 {
		return -1, nil, nil
	}
	if n, err = strconv.Atoi(string(b[1:end])); err != nil || n < 0 {
		return 0, nil, errProtocol
	}
	return n, b[end+2:], nil
}

// texts returns a command as it is sent.
func texts(words [][]byte) ([]string, error) {
	command := make([]string, len(words))
	for i, w := range words {
		command[i] = string(w)
	}
	command[0] = strings.ToLower(command[0])
	named := len(command)
	if command[0] == "eval" || command[0] == "evalsha" {
		if len(command) < 3 {
			return nil, errProtocol
		}
		keys, err := strconv.Atoi(command[2])
		if err != nil || keys < 0 || keys > len(command)-3 {
			return nil, errProtocol
		}
		named = 3 + keys
	}
	if i := slices.IndexFunc(command[:named], notText); i >= 0 {
		return nil, fmt.Errorf("word %d of the command %s is not a text, and only scripts take others over HTTP", i, command[0])
	}
	for i, w := range words[named:] {
		command[named+i] = hex.EncodeToString(w)
	}
	return command, nil
}

func notText(s string) bool { return !utf8.ValidString(s) }
